//! Every route with good input.

use axum::body::Body;
use serde_json::{Value, json};

use super::support::{host, request};

#[tokio::test]
async fn health_tells_version_and_process() {
    let host = host(json!([])).await;
    let body = host.get("/api/health").await.json();
    assert_eq!(body["status"], "ok");
    assert_eq!(body["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(body["bootId"].as_str().unwrap().len(), 32);
}

#[tokio::test]
async fn worlds_are_listed_and_told_in_full() {
    let host = host(json!([])).await;
    let list = host.get("/api/worlds").await.json();
    let world = &list["items"][0];
    assert_eq!((&world["id"], &world["name"], &world["locale"]), (&json!("yard"), &json!("The Yard"), &json!("en")));
    assert_eq!(world["defaultPluginIds"], json!(["teller", "counter"]));
    assert_eq!(world.get("lore"), None);
    let one = host.get("/api/worlds/yard").await.json();
    assert!(one["lore"].as_str().unwrap().contains("the well is deep"));
}

#[tokio::test]
async fn packages_are_listed_with_state_runtimes_and_settings() {
    let host = host(json!([])).await;
    let list = host.get("/api/plugins").await.json();
    let ids: Vec<&str> = list["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["counter", "teller"]);
    let counter = &list["items"][0];
    assert_eq!(
        (&counter["source"], &counter["hostState"], &counter["kind"]),
        (&json!("builtin"), &json!("loaded"), &json!("plugin"))
    );
    assert_eq!(counter["displayName"], "Counter");
    assert_eq!(
        counter["runtimes"][0],
        json!({ "id": "counter/keeper", "stage": "post-turn", "type": "function", "trigger": "auto" })
    );
    assert_eq!(
        counter["userSettings"][0],
        json!({ "key": "step", "type": "integer", "label": "Step", "default": 1, "min": 1, "max": 10 })
    );
    let one = host.get("/api/plugins/counter").await.json();
    assert_eq!(one["dataSchemas"][0]["namespace"], "counts");
    assert_eq!(one["commands"][0]["arguments"][0]["type"], "integer");
}

#[tokio::test]
async fn panels_come_with_their_translations_and_by_session() {
    let host = host(json!([])).await;
    let all = host.get("/api/ui-specs").await.json();
    assert_eq!(all["right"][0]["pluginId"], "counter");
    let spec = &all["right"][0]["specs"][0];
    assert_eq!(spec["label"], json!({ "en": "Counts", "zh-CN": "计数" }));
    assert_eq!(spec["id"], "counts");
    assert_eq!((&all["left"], &all["message"], &all["diagnostics"]), (&json!([]), &json!([]), &json!([])));

    let only = json!({ "id": "plain", "worldId": "yard", "plugins": ["teller"] });
    assert_eq!(host.post("/api/sessions", &only).await.status, 201);
    assert_eq!(host.get("/api/ui-specs?sessionId=plain").await.json()["right"], json!([]));
}

#[tokio::test]
async fn a_session_lives_from_creation_to_deletion() {
    let host = host(json!([])).await;
    let created = host.post("/api/sessions", &json!({ "worldId": "yard" })).await;
    assert_eq!(created.status, 201);
    let record = created.json();
    let id = record["id"].as_str().unwrap().to_owned();
    assert!(id.starts_with("yard-"), "{id}");
    assert_eq!(
        (&record["status"], &record["phase"], &record["locale"]),
        (&json!("active"), &json!("setup"), &json!("en"))
    );
    assert_eq!(record["activePlugins"], json!(["counter", "teller"]));
    assert_eq!(record["completedPlayerTurns"], 0);
    assert!(record["createdAt"].as_str().unwrap().ends_with('Z'));
    assert_eq!(record.get("seed"), None, "the seed of the dice is nobody's business");

    assert_eq!(host.get(&format!("/api/sessions/{id}")).await.json(), record);
    assert_eq!(host.get("/api/sessions?worldId=yard").await.json()["items"], json!([record]));
    assert_eq!(host.get("/api/sessions?worldId=elsewhere").await.json()["items"], json!([]));

    let paused = host.send(request("PATCH", &format!("/api/sessions/{id}"), r#"{"status":"paused"}"#.into())).await;
    assert_eq!(paused.json()["status"], "paused");
    let refused = host.act(&id, "send_message", json!({ "content": "Hello" })).await;
    assert_eq!(refused.refusal(), (409, "session_not_active".to_owned()));
    host.send(request("PATCH", &format!("/api/sessions/{id}"), r#"{"status":"ended"}"#.into())).await;
    let refused = host.act(&id, "send_message", json!({ "content": "Hello" })).await;
    assert_eq!(refused.refusal(), (409, "session_ended".to_owned()));

    let deleted = host.send(request("DELETE", &format!("/api/sessions/{id}"), "".into())).await;
    assert_eq!(deleted.json(), json!({ "ok": true }));
    assert_eq!(host.get(&format!("/api/sessions/{id}")).await.refusal(), (404, "session_not_found".to_owned()));
}

#[tokio::test]
async fn a_session_shows_its_plugins_commands_and_plan() {
    let host = host(json!([])).await;
    host.session("s").await;
    let plugins = host.get("/api/sessions/s/plugins").await.json();
    assert_eq!(plugins["commands"][0]["commandId"], "counter:add");
    assert_eq!(plugins["commands"][0]["name"], "add");
    let active: Vec<(&Value, &Value)> =
        plugins["items"].as_array().unwrap().iter().map(|item| (&item["id"], &item["active"])).collect();
    assert_eq!(active, [(&json!("counter"), &json!(true)), (&json!("teller"), &json!(true))]);
    let plan = host.get("/api/sessions/s/plan").await.json();
    assert_eq!(plan["digest"].as_str().unwrap().len(), 64);
    assert!(plan["stages"].as_array().unwrap().iter().any(|stage| stage["stage"] == "narrative"));
}

#[tokio::test]
async fn a_turn_leaves_messages_data_and_a_document() {
    let host = host(json!([{ "content": "The bucket comes up empty." }])).await;
    host.session("s").await;
    let frames = host.act("s", "send_message", json!({ "content": "I draw water." })).await.frames();
    assert_eq!(frames.last().unwrap()["payload"]["committed"], true, "{frames:#?}");

    let messages = host.get("/api/sessions/s/messages").await.json();
    let told: Vec<(&str, &str)> = messages["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| (message["role"].as_str().unwrap(), message["content"].as_str().unwrap()))
        .collect();
    assert_eq!(told, [("user", "I draw water."), ("assistant", "The bucket comes up empty.")]);

    let data = host.get("/api/sessions/s/plugin-data/counter/counts").await.json();
    assert_eq!((&data["items"][0]["key"], &data["items"][0]["value"]), (&json!("turns"), &json!({ "n": 1 })));
    assert!(data["items"][0]["version"].as_u64().unwrap() >= 1);
    let record = host.get("/api/sessions/s/plugin-data/counter/counts/turns").await.json();
    assert_eq!((&record["pluginId"], &record["value"]["n"]), (&json!("counter"), &json!(1)));
    assert_eq!(host.get("/api/sessions/s/plugin-data").await.json()["items"].as_array().unwrap().len(), 1);
    assert_eq!(host.get("/api/sessions/s/plugin-data/teller").await.json()["items"], json!([]));
    // Names from data are ordinary keys.
    for name in ["__proto__", "constructor", "%F0%9F%92%A7", "a%2Fb"] {
        let answer = host.get(&format!("/api/sessions/s/plugin-data/counter/counts/{name}")).await;
        assert_eq!(answer.refusal(), (404, "plugin_data_not_found".to_owned()), "{name}");
    }

    let turns = host.get("/api/sessions/s/turns?limit=1").await.json();
    let turn = &turns["items"][0];
    assert_eq!(
        (&turn["origin"], &turn["committed"], &turn["logicalTurn"]),
        (&json!("player"), &json!(true), &json!(1))
    );
    assert!(turn["runtimes"].as_array().unwrap().iter().all(|runtime| runtime["durationMicros"].is_u64()));
    assert_eq!(turn["events"][0]["topic"], "counter.counted");

    let rows = host.get("/api/traces/s/turns?limit=1").await.json();
    assert_eq!(rows["items"][0]["turnId"], turn["turnId"]);
    let id = turn["turnId"].as_str().unwrap();
    let trace = host.get(&format!("/api/traces/s/turns/{id}")).await.json();
    assert_eq!(
        (&trace["turnId"], &trace["committed"], &trace["replayable"]),
        (&turn["turnId"], &json!(true), &json!(true))
    );
    assert_eq!(trace["runtimes"][0]["runtimeId"], turn["runtimes"][0]["runtimeId"]);
    assert_eq!(host.get("/api/traces/s/turns/t99").await.refusal(), (404, "trace_not_found".to_owned()));
    assert_eq!(host.get("/api/traces/nobody/turns").await.refusal(), (404, "session_not_found".to_owned()));
    let info = host.get("/api/sessions/s/execution").await.json();
    assert_eq!(
        (&info["status"], &info["turnId"], &info["requestId"]),
        (&json!("completed"), &turn["turnId"], &json!("r1"))
    );
    assert_eq!(host.get("/api/sessions/s").await.json()["completedPlayerTurns"], 1);
}

#[tokio::test]
async fn the_world_of_a_session_is_read_and_its_seats_switched() {
    let host = host(json!([])).await;
    let id = host.post("/api/sessions", &json!({ "worldId": "yard" })).await.json()["id"].as_str().unwrap().to_owned();
    let at = |path: &str| format!("/api/sessions/{id}/{path}");
    assert_eq!(host.get(&at("characters")).await.json()["items"], json!([]));
    for name in ["ana", "bo"] {
        let made = host.post(&at("characters"), &json!({ "id": name, "name": name, "type": "player" })).await;
        assert_eq!((made.status.as_u16(), &made.json()["version"]), (201, &json!(1)));
    }
    let bad = host.post(&at("characters"), &json!({ "id": "x", "name": "X", "type": "ghost" })).await;
    assert_eq!(bad.refusal(), (400, "character_invalid".into()));
    assert_eq!(host.post(&at("characters"), &json!([])).await.refusal(), (400, "invalid_body".into()));
    assert_eq!(host.get(&at("character-schema")).await.json(), Value::Null);
    let seats = host.get(&at("seats")).await.json();
    assert_eq!(seats["items"][0]["characterIds"], json!(["ana", "bo"]));

    let put = async |path: &str, body: Value| host.send(request("PUT", &at(path), Body::from(body.to_string()))).await;
    let seat = put("seats/player", json!({ "characterId": "bo" })).await;
    assert_eq!((seat.status.as_u16(), &seat.json()["currentCharacterId"]), (200, &json!("bo")));
    assert_eq!(put("seats/player", json!({ "characterId": "x" })).await.refusal(), (400, "invalid_request".into()));
    assert_eq!(put("seats/none", json!({ "characterId": "bo" })).await.refusal(), (404, "seat_not_found".into()));

    let entry = json!({ "content": "It counts.", "strategy": "constant" });
    assert_eq!(put("lorebook/bell", entry).await.json()["owner"], "player");
    assert_eq!(put("lorebook/bell", json!({})).await.refusal(), (400, "invalid_request".into()));
    assert_eq!(host.get(&at("lorebook")).await.json()["items"][0]["id"], "bell");
    let delete = async || host.send(request("DELETE", &at("lorebook/bell"), Body::empty())).await;
    assert_eq!(delete().await.status, 200);
    assert_eq!(delete().await.refusal(), (404, "lorebook_entry_not_found".into()));

    assert_eq!(host.get(&at("state")).await.json(), json!({ "tables": {} }));
    let dimensions = host.get(&at("dimensions")).await.json();
    assert_eq!((&dimensions["dimensions"], &dimensions["dimensionProviderPluginId"]), (&json!({}), &Value::Null));
}
