//! `covel play` and `covel serve`: they listen, stop, and lose nothing.

use std::fs;

use serde_json::{Value, json};

use super::support::{Served, fixture};

fn turn(served: &Served, session: &str, content: &str) -> Value {
    let body =
        json!({ "requestId": "r", "type": "send_message", "sessionId": session, "payload": { "content": content } });
    let (status, text) = served.ask("POST", "/api/actions", Some(&body));
    assert_eq!(status, 200, "{text}");
    let last = text.trim_end().rsplit("\n\n").next().unwrap();
    serde_json::from_str(last.strip_prefix("data: ").unwrap()).unwrap()
}

#[test]
fn play_needs_nothing_but_a_folder_and_stops_when_told() {
    let folder = tempfile::tempdir().unwrap();
    let mut served = Served::play(folder.path());
    assert_eq!(served.json("GET", "/api/health", None)["status"], "ok");
    let (status, page) = served.ask("GET", "/", None);
    assert!(status == 200 && page.contains("<title>Covel</title>"), "{page}");
    let worlds = served.json("GET", "/api/worlds", None);
    let world = worlds["items"][0]["id"].as_str().unwrap();
    let plugins = served.json("GET", "/api/plugins", None);
    assert!(plugins["items"].as_array().unwrap().iter().all(|plugin| plugin["hostState"] == "loaded"), "{plugins}");
    served.json("POST", "/api/sessions", Some(&json!({ "id": "s", "worldId": world })));
    let last = turn(&served, "s", "I look at the water.");
    assert_eq!(last["payload"]["committed"], true, "{last}");
    served.signal("TERM");
    assert!(served.child.wait().unwrap().success());
    assert!(std::net::TcpStream::connect(&served.address).is_err());
}

#[test]
fn an_acknowledged_turn_survives_being_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mut served = Served::play(folder.path());
    let world = served.json("GET", "/api/worlds", None)["items"][0]["id"].clone();
    served.json("POST", "/api/sessions", Some(&json!({ "id": "s", "worldId": world })));
    for (place, text) in ["I wait.", "I listen.", "I go."].iter().enumerate() {
        assert_eq!(turn(&served, "s", text)["payload"]["committed"], true);
        served.signal("KILL");
        served.child.wait().unwrap();
        served = Served::play(folder.path());
        assert_eq!(served.json("GET", "/api/sessions/s", None)["completedPlayerTurns"], place + 1);
        let turns = served.json("GET", "/api/sessions/s/turns", None);
        let last = turns["items"].as_array().unwrap().last().unwrap();
        assert_eq!(last["message"], *text);
        let messages = served.json("GET", "/api/sessions/s/messages", None);
        let told = messages["items"].as_array().unwrap().last().unwrap();
        assert_eq!((&told["role"], &told["turnId"]), (&json!("assistant"), &last["turnId"]));
    }
}

#[test]
fn a_process_killed_in_a_turn_leaves_it_whole_or_not_at_all() {
    use std::io::{Read, Write};
    let folder = tempfile::tempdir().unwrap();
    let mut served = Served::play(folder.path());
    let world = served.json("GET", "/api/worlds", None)["items"][0]["id"].clone();
    served.json("POST", "/api/sessions", Some(&json!({ "id": "s", "worldId": world })));
    assert_eq!(turn(&served, "s", "I wait.")["payload"]["committed"], true);
    let before = served.json("GET", "/api/sessions/s/messages", None);

    let body =
        json!({ "requestId": "r", "type": "send_message", "sessionId": "s", "payload": { "content": "I run." } })
            .to_string();
    let mut stream = std::net::TcpStream::connect(&served.address).unwrap();
    write!(
        stream,
        "POST /api/actions HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n{body}",
        served.address,
        body.len()
    )
    .unwrap();
    let mut seen = String::new();
    let mut piece = [0; 512];
    // The story has begun to come: the turn is in its middle.
    while !seen.contains("narrative.delta") {
        let read = stream.read(&mut piece).unwrap();
        assert_ne!(read, 0, "{seen}");
        seen.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    served.signal("KILL");
    served.child.wait().unwrap();

    let served = Served::play(folder.path());
    assert_eq!(served.json("GET", "/api/sessions/s/messages", None), before);
    assert_eq!(served.json("GET", "/api/sessions/s", None)["completedPlayerTurns"], 1);
    assert_eq!(turn(&served, "s", "I run.")["payload"]["committed"], true, "the next turn is fine");
}

#[test]
fn a_told_stop_lets_the_running_turn_finish() {
    use std::io::{Read, Write};
    let folder = tempfile::tempdir().unwrap();
    let mut served = Served::play(folder.path());
    let world = served.json("GET", "/api/worlds", None)["items"][0]["id"].clone();
    served.json("POST", "/api/sessions", Some(&json!({ "id": "s", "worldId": world })));
    let body =
        json!({ "requestId": "r", "type": "send_message", "sessionId": "s", "payload": { "content": "I run." } })
            .to_string();
    let mut stream = std::net::TcpStream::connect(&served.address).unwrap();
    let length = body.len();
    write!(stream, "POST /api/actions HTTP/1.1\r\nHost: {}\r\nContent-Length: {length}\r\n\r\n{body}", served.address)
        .unwrap();
    let mut seen = String::new();
    let mut piece = [0; 512];
    while !seen.contains("narrative.delta") {
        let read = stream.read(&mut piece).unwrap();
        seen.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    served.signal("INT");
    stream.read_to_string(&mut seen).unwrap();
    assert!(seen.contains("execution.completed") && seen.contains(r#""committed":true"#), "{seen}");
    assert!(served.child.wait().unwrap().success());
    let served = Served::play(folder.path());
    let session = served.json("GET", "/api/sessions/s", None);
    assert_eq!(session["completedPlayerTurns"], 1);
}

#[test]
fn serve_reads_its_file_and_serves_what_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("covel.toml");
    let text = format!(
        "[server]\nbind = \"127.0.0.1:0\"\ndata_dir = \"data\"\n[packages]\nplugins = [{:?}, {:?}]\nworlds = [{:?}]\n",
        fixture("plugins"),
        fixture("broken"),
        fixture("worlds")
    );
    fs::write(&config, text).unwrap();
    let served = Served::start(&["serve", "--config", &config.display().to_string(), "--json"]);
    assert_eq!(served.json("GET", "/api/worlds", None)["items"][0]["id"], "yard");
    let plugins = served.json("GET", "/api/plugins", None);
    let states: Vec<(&str, &str)> = plugins["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|plugin| (plugin["id"].as_str().unwrap(), plugin["hostState"].as_str().unwrap()))
        .collect();
    assert_eq!(
        states,
        [("counter", "loaded"), ("teller", "loaded"), ("torn", "error")],
        "one broken package stops no other"
    );
    assert!(plugins["items"][2]["error"].as_str().unwrap().contains("runtmie"));
    assert!(folder.path().join("data").is_dir());
}
