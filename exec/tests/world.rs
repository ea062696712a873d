//! Writes beyond plugin data: characters and their schema, lorebook, dimensions, shared state, what the player is shown
//! and asked; seats.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;

use covel_exec::{ExecutionKind, ExecutionRequest, NativePackage, NewSession, RuntimeStatus, TurnDocument};
use covel_graph::{Stage as TurnStage, package::Package};
use serde_json::{Value, json};
use support::{Stage, error_code, function, package, row, stage};

/// A story agent.
fn narrator() -> Arc<Package> {
    package(&[(
        "PLUGIN.md",
        "---\nid: narrator\nkind: plugin\ndescription: Tells.\nprovides: [narrative-engine@1]\nruntime:\n  type: agent\n  schedule: { stage: narrative }\n  io: { visibility: story, output: { contract: narrative-engine@1 } }\n  agent: { loop: { maxRetries: 0 } }\n---\nTell the story.\n",
    )])
}

fn told() -> Value {
    json!([{ "content": "The bell rings." }, { "content": "Again." }, { "content": "And again." }, { "content": "On." }])
}

/// A function that returns these effects.
fn writer(id: &str, stage: &str, effects: &str) -> Arc<Package> {
    let code = format!("export default async (ctx) => ({{ outcome: 'success', value: {{}}, effects: {effects} }});");
    function(id, &format!("{{ stage: {stage} }}"), "", "", &code)
}

/// A function that makes these proposals.
fn proposer(id: &str, stage: &str, extra: &str, proposals: &str) -> Arc<Package> {
    let code = format!(
        "export default async (ctx) => ({{ kind: 'covel.tool-result', content: {{ outcome: 'success', value: {{}} }}, pendingProposals: {proposals}, emittedEvents: [] }});"
    );
    function(id, &format!("{{ stage: {stage} }}"), "", extra, &code)
}

fn reader(id: &str, stage: &str, part: &str) -> Arc<Package> {
    let code =
        format!("export default async (ctx) => ({{ outcome: 'success', value: {{ seen: ctx.world.{part} }} }});");
    function(id, &format!("{{ stage: {stage} }}"), "", "", &code)
}

fn seen<'a>(turn: &'a TurnDocument, id: &str) -> &'a Value {
    &row(turn, id).output.as_ref().unwrap().value()["seen"]
}

fn kinds(turn: &TurnDocument) -> Vec<&str> {
    turn.changes.iter().map(|change| change.kind.as_str()).collect()
}

fn ids(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect()
}

async fn play(packages: Vec<Arc<Package>>) -> (Stage, String, TurnDocument) {
    let stage = stage(packages, told()).await;
    let session = stage.session().await;
    let turn = stage.turn(&session, "look").await;
    (stage, session, turn)
}

/// Covers: COM-6, RDD-4
#[tokio::test(flavor = "multi_thread")]
async fn characters_of_earlier_layers_are_seen_tracked_and_committed() {
    let (stage, session, turn) = play(vec![
        writer(
            "maker",
            "pre-turn",
            "{ characters: [{ id: 'ana', name: 'Ana', fields: { __proto__x: 1, mood: 'calm' } }] }",
        ),
        reader("sibling", "pre-turn", "characters"),
        reader("later", "post-turn", "characters"),
        reader("only-dimensions", "post-turn", "dimensions"),
    ])
    .await;
    assert!(turn.committed, "{turn:#?}");
    assert_eq!(*seen(&turn, "sibling"), json!([]), "siblings are blind to each other");
    let ana = &seen(&turn, "later")[0];
    assert_eq!(
        (&ana["id"], &ana["type"], &ana["version"], &ana["sessionId"], &ana["fields"]["mood"]),
        (&json!("ana"), &json!("npc"), &json!(1), &json!("s"), &json!("calm"))
    );
    assert_eq!(row(&turn, "later").reads_from, ["maker"]);
    assert!(row(&turn, "only-dimensions").reads_from.is_empty());
    assert!(row(&turn, "sibling").reads_from.is_empty());
    assert_eq!(kinds(&turn), ["character.upserted"]);
    assert_eq!(stage.engine.characters(&session).unwrap().len(), 1);
    assert!(turn.notes.is_empty(), "{:?}", turn.notes);
}

/// Covers: COM-6, RDD-2, RDD-4
#[tokio::test(flavor = "multi_thread")]
async fn who_read_a_character_that_did_not_commit_falls_with_its_writer() {
    // The writer's second proposal is refused at commit only: both parallel runtimes ask under one id.
    let ask = "interactions: [{ interactionId: 'q', type: 'choice', choices: [] }]";
    let (stage, session, turn) = play(vec![
        narrator(),
        writer("a-first", "pre-turn", &format!("{{ {ask} }}")),
        writer("b-maker", "pre-turn", &format!("{{ characters: [{{ id: 'ana', name: 'Ana' }}], {ask} }}")),
        reader("c-reader", "post-turn", "characters"),
        reader("d-dimensions", "post-turn", "dimensions"),
    ])
    .await;
    assert!(turn.committed, "{turn:#?}");
    let dropped: Vec<&str> = turn.isolated.iter().map(|one| one.runtime_id.as_str()).collect();
    assert_eq!(dropped, ["b-maker", "c-reader"]);
    assert_eq!(turn.isolated[0].error.code, "interaction-already-requested");
    assert_eq!(turn.isolated[1].error.code, "upstream-not-committed");
    assert!(stage.engine.characters(&session).unwrap().is_empty());
    assert_eq!(kinds(&turn), ["interaction.requested"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_patches_of_one_character_both_survive() {
    let patch =
        |field: &str| format!("{{ characters: [{{ id: 'ana', expectedVersion: 1, fields: {{ {field}: 1 }} }}] }}");
    let (stage, session, turn) = play(vec![
        writer(
            "a-maker",
            "pre-turn",
            "{ characters: [{ id: 'ana', name: 'Ana', description: 'Tall.', aliases: ['Annie'] }] }",
        ),
        writer("b-one", "post-turn", &patch("one")),
        writer("c-two", "post-turn", &patch("two")),
        reader("d-reader", "audit", "characters"),
    ])
    .await;
    assert!(turn.committed, "{turn:#?}");
    let stored = stage.engine.characters(&session).unwrap();
    let ana = stored[0].value();
    assert_eq!(ana["fields"], json!({"one": 1, "two": 1}));
    assert_eq!(
        (&ana["version"], &ana["description"], &ana["aliases"]),
        (&json!(3), &json!("Tall."), &json!(["Annie"]))
    );
    let mut shown = seen(&turn, "d-reader")[0].clone();
    for time in ["createdAt", "updatedAt"] {
        shown[time] = ana[time].clone();
    }
    assert_eq!(shown, *ana, "what a later layer saw is what was committed");
    assert_eq!(row(&turn, "d-reader").reads_from, ["c-two"]);
}

/// Covers: SEA-1, SEA-4, SEA-5
#[tokio::test(flavor = "multi_thread")]
async fn a_session_has_several_players_and_only_the_host_switches_seats() {
    let players = "{ characters: [{ id: 'ana', name: 'Ana', type: 'player' }, { id: 'bo', name: 'Bo', type: 'player' }, { id: 'cat', name: 'Cat' }] }";
    let (stage, session, turn) = play(vec![
        function(
            "a-players",
            "{ stage: pre-turn, trigger: { type: auto, maxTriggerCount: 1 } }",
            "",
            "",
            &format!("export default () => ({{ outcome: 'success', effects: {players} }});"),
        ),
        reader("b-seats", "post-turn", "seats"),
    ])
    .await;
    assert!(turn.committed, "{turn:#?}");
    assert_eq!(seen(&turn, "b-seats")[0]["characterIds"], json!([]), "seats are frozen for the execution");
    assert!(row(&turn, "b-seats").reads_from.is_empty());
    let next = stage.turn(&session, "again").await;
    let seat = &seen(&next, "b-seats")[0];
    assert_eq!(
        *seat,
        json!({"id": "player", "primary": true, "currentCharacterId": "ana", "characterIds": ["ana", "bo"]})
    );
    let engine = &stage.engine;
    for (seat, character, code) in [
        ("player", "cat", "invalid-request"),
        ("player", "nobody", "invalid-request"),
        ("other", "bo", "seat-not-found"),
    ] {
        let refused = engine.switch_seat_character(&session, seat, character, None).await.unwrap_err();
        assert_eq!(refused.code(), code);
    }
    let (sender, mut events) = tokio::sync::mpsc::unbounded_channel();
    engine.switch_seat_character(&session, "player", "bo", Some(sender)).await.unwrap();
    assert_eq!(events.recv().await.unwrap().kind, "seats.changed");
    let last = stage.turn(&session, "and again").await;
    assert_eq!(seen(&last, "b-seats")[0]["currentCharacterId"], "bo");
    assert_eq!(engine.seats(&session).unwrap()[0].current_character_id.as_deref(), Some("bo"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_schema_rules_characters_and_its_version_counts_on() {
    let schema = "[{ type: 'character.schema.set', payload: { types: ['guard'], attributes: [{ id: 'trust', name: 'Trust', type: 'number', category: 'social', min: 0, max: 5, defaultValue: 2 }] } }]";
    let bad = |id: &str, body: &str| writer(id, "post-turn", &format!("{{ characters: [{body}] }}"));
    let (stage, session, turn) = play(vec![
        narrator(),
        proposer("schema", "pre-turn", "", schema),
        bad("bad-type", "{ id: 'x', name: 'X', type: 'ghost' }"),
        bad("bad-value", "{ id: 'y', name: 'Y', type: 'guard', fields: { trust: 9 } }"),
        bad("good", "{ id: 'z', name: 'Z', type: 'guard', fields: { free: [1] } }"),
        reader("schema-reader", "audit", "characterSchema"),
    ])
    .await;
    assert!(turn.committed, "{turn:#?}");
    for id in ["bad-type", "bad-value"] {
        assert_eq!((row(&turn, id).status, error_code(row(&turn, id))), (RuntimeStatus::Failed, "character-invalid"));
    }
    let stored = stage.engine.characters(&session).unwrap();
    assert_eq!(stored.len(), 1);
    assert_eq!(stored[0].value()["fields"], json!({"free": [1], "trust": 2}));
    assert_eq!(seen(&turn, "schema-reader")["version"], 1);
    assert_eq!(row(&turn, "schema-reader").reads_from, ["schema"]);
    let next = stage.turn(&session, "again").await;
    assert_eq!(seen(&next, "schema-reader")["version"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn state_lorebook_ui_and_assets_are_stored_and_told() {
    let effects = "{ statePatches: [{ table: 'town', field: '__proto__', value: 3 }], lorebook: [{ id: 'bell', content: 'It counts.', strategy: 'selective', keys: ['bell'] }], ui: [{ type: 'card', title: 'Hi' }], notifications: [{ title: 'N' }], assetGenerations: [{ ref: { id: 'p1', mime: 'image/png', size: 3 }, modality: 'image' }] }";
    let stage = stage(vec![writer("w", "pre-turn", effects)], json!([])).await;
    let session = stage.session().await;
    let (sender, mut events) = tokio::sync::mpsc::unbounded_channel();
    let turn = stage.engine.execute(ExecutionRequest::player(&session, "x"), Some(sender)).await.unwrap();
    assert!(turn.committed, "{turn:#?}");
    let wanted = ["state.changed", "lorebook.upserted", "ui.rendered", "ui.rendered", "asset.generated"];
    let mut found = kinds(&turn);
    found.sort_by_key(|kind| wanted.iter().position(|known| known == kind));
    assert_eq!(found, wanted);
    let mut told = Vec::new();
    while let Some(event) = events.recv().await {
        if event.payload.value().get("runtimeId") == Some(&json!("w")) && !event.kind.starts_with("runtime.") {
            told.push(event.kind);
        }
    }
    assert_eq!(told.len(), 4, "{told:?}");
    let tables = stage.engine.state_tables(&session).unwrap();
    assert_eq!(tables.text(), r#"{"town":{"__proto__":3}}"#);
    let entries = stage.engine.lorebook(&session).unwrap();
    assert_eq!((&entries[0].value()["owner"], &entries[0].value()["enabled"]), (&json!("plugin:w"), &json!(true)));
    assert!(stage.data(&session).is_empty(), "kernel records are not listed as plugin data");
}

/// One package that owns the dimensions: sets them up, follows narratives, edits by hand.
fn owner() -> Arc<Package> {
    package(&[
        (
            "PLUGIN.md",
            "---\nid: keeper\nkind: plugin\ndescription: Keeps dimensions.\nprovides: [world.dimensions@1]\n---\n",
        ),
        (
            "runtimes/init/RUNTIME.md",
            "---\ntype: function\nschedule: { stage: setup }\nfunction: { handler: ./handler.js }\n---\n",
        ),
        (
            "runtimes/init/handler.js",
            "export default async (ctx) => ({ kind: 'covel.tool-result', emittedEvents: [], content: { outcome: 'success', completion: 'done' }, pendingProposals: [{ type: 'dimension.initialize', payload: { definitions: { tide: { name: 'Tide', schema: { type: 'integer', minimum: 0 }, initialValue: 3, updateRule: { en: 'It falls.', zh: '退潮。' } }, mood: { name: 'Mood', schema: { type: 'string', 'x-i18n': true }, initialValue: { en: 'calm', zh: '平静' } } } } }] });",
        ),
        (
            "runtimes/tracker/RUNTIME.md",
            "---\ntype: function\nschedule: { stage: post-turn }\nio: { inputs: { turn: { from: { kernel: turn-digest@1 }, required: false } } }\nfunction: { handler: ./handler.js }\n---\n",
        ),
        (
            "runtimes/tracker/handler.js",
            "export default async (ctx) => { if (ctx.playerMessage === 'idle') return { outcome: 'failed', error: 'asleep' }; const tide = ctx.world.dimensions.tide; const stale = ctx.playerMessage === 'stale'; return { kind: 'covel.tool-result', emittedEvents: [], content: { outcome: 'success', value: { tide } }, pendingProposals: [{ type: 'dimension.update', payload: { updates: [{ id: 'tide', expectedVersion: tide.version + (stale ? 5 : 0), value: tide.value - 1 }], source: { resultId: `${ctx.turnId}:narrator`, turnNumber: ctx.logicalTurn } } }] }; };",
        ),
        (
            "runtimes/editor/RUNTIME.md",
            "---\ntype: function\nschedule: { trigger: { type: manual } }\nfunction: { handler: ./handler.js }\n---\n",
        ),
        (
            "runtimes/editor/handler.js",
            "export default async (ctx) => ({ kind: 'covel.tool-result', emittedEvents: [], content: { outcome: 'success' }, pendingProposals: [{ type: 'dimension.update', payload: ctx.manualPayload }] });",
        ),
    ])
}

fn manual(session: &str, payload: Value) -> ExecutionRequest {
    ExecutionRequest {
        kind: ExecutionKind::Manual {
            runtime_id: "keeper/editor".into(),
            payload: covel_graph::Json::from_value(payload),
            message: String::new(),
            ignore_upstreams: false,
        },
        ..ExecutionRequest::player(session, "")
    }
}

/// Covers: SWC-3
#[tokio::test(flavor = "multi_thread")]
async fn dimensions_are_frozen_tracked_and_settled() {
    let stage = stage(vec![owner(), narrator(), reader("audit-reader", "audit", "dimensions")], told()).await;
    let session = stage.session().await;
    let first = stage.turn(&session, "go").await;
    assert!(first.committed, "{first:#?}");
    assert_eq!(kinds(first.setup.as_ref().unwrap()), ["dimensions.changed"]);
    assert_eq!(kinds(&first), ["dimensions.settlement.changed", "dimensions.changed", "dimensions.settlement.changed"]);
    // Post-turn updates show from the next execution.
    let tide = json!({"name": "Tide", "schema": {"type": "integer", "minimum": 0}, "value": 3, "version": 1});
    assert_eq!(seen(&first, "audit-reader")["tide"], tide);
    assert_eq!(seen(&first, "audit-reader")["mood"]["value"], "calm");
    let public = stage.engine.dimensions(&session).unwrap();
    assert_eq!(public.value()["dimensions"]["tide"]["value"], 2);
    assert_eq!(public.value()["dimensionSettlements"], json!([]));

    // The tracker fails: the story stands, the next one waits.
    let unsettled = stage.turn(&session, "idle").await;
    assert!(unsettled.committed, "{unsettled:#?}");
    let receipts = stage.engine.dimensions(&session).unwrap();
    let source = receipts.value()["dimensionSettlements"][0]["source"].clone();
    assert_eq!(source["turnNumber"], 2);
    let blocked = stage.turn(&session, "go on").await;
    assert_eq!(blocked.error.as_ref().unwrap().code, "dimension-settlement-pending", "{blocked:#?}");
    assert!(!blocked.committed && blocked.runtimes.is_empty());

    // A plain edit does not resolve it; a settlement does, once.
    let edit = json!({"updates": [{"id": "tide", "expectedVersion": 2, "value": 7}]});
    let edited = stage.engine.execute(manual(&session, edit.clone()), None).await.unwrap();
    assert!(edited.committed, "{edited:#?}");
    let again = stage.engine.execute(manual(&session, edit), None).await.unwrap();
    assert_eq!(again.error.as_ref().unwrap().code, "dimension-version-conflict");
    assert_eq!(stage.turn(&session, "go on").await.error.unwrap().code, "dimension-settlement-pending");
    let skip = json!({"updates": [], "source": source, "settlement": "skipped"});
    let settled = stage.engine.execute(manual(&session, skip.clone()), None).await.unwrap();
    assert_eq!(kinds(&settled), ["dimensions.settlement.changed"], "{settled:#?}");
    let twice = stage.engine.execute(manual(&session, skip), None).await.unwrap();
    assert_eq!(twice.error.unwrap().code, "dimension-already-settled");
    let freed = stage.turn(&session, "go on").await;
    assert!(freed.committed, "{freed:#?}");
    assert_eq!(stage.engine.dimensions(&session).unwrap().value()["dimensions"]["tide"]["value"], 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_provider_writes_dimensions_and_stale_batches_fall_alone() {
    let update = "[{ type: 'dimension.update', payload: { updates: [{ id: 'tide', expectedVersion: 1, value: 0 }] } }]";
    let data = "{ pluginData: [{ namespace: '_dimensions', key: 'tide', value: 1 }] }";
    let (stage, session, turn) = play(vec![
        owner(),
        narrator(),
        proposer("thief", "post-turn", "", update),
        writer("forger", "post-turn", data),
    ])
    .await;
    assert!(turn.committed, "{turn:#?}");
    assert_eq!(error_code(row(&turn, "thief")), "dimension-owner-required");
    assert_eq!(error_code(row(&turn, "forger")), "invalid-input");
    let stale = stage.turn(&session, "stale").await;
    assert!(stale.committed, "{stale:#?}");
    assert_eq!(stale.isolated[0].error.code, "dimension-version-conflict");
    assert_eq!(stage.engine.dimensions(&session).unwrap().value()["dimensions"]["tide"]["version"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_write_takes_back_what_the_runtime_saw_of_it() {
    let code = "export default async (ctx) => { const before = ctx.world.characters.length; return { kind: 'covel.tool-result', emittedEvents: [], content: { outcome: 'success', value: { before } }, pendingProposals: [{ type: 'character.upsert', payload: { id: 'a', name: 'A' } }, { type: 'character.upsert', payload: { id: 'b', name: 'B', aliases: ['a'] } }] }; };";
    let (stage, session, turn) = play(vec![
        narrator(),
        function("w", "{ stage: pre-turn }", "", "", code),
        reader("r", "post-turn", "characters"),
    ])
    .await;
    assert_eq!(error_code(row(&turn, "w")), "character-alias-conflict");
    assert_eq!(*seen(&turn, "r"), json!([]));
    assert!(stage.engine.characters(&session).unwrap().is_empty());
    assert!(ids(seen(&turn, "r")).is_empty());
}

/// Covers: SEA-1, COM-6
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_sees_seats_and_what_it_wrote_is_seen_by_its_caller() {
    let maker = package(&[
        (
            "PLUGIN.md",
            "---\nid: maker\nkind: plugin\ndescription: Makes people.\nentry: ./entry.js\ncontributes: { tools: [make] }\nruntime:\n  type: function\n  schedule: { stage: pre-turn }\n  function: { handler: ./handler.js, tools: { plugin: [make] } }\n---\n",
        ),
        (
            "entry.js",
            "export default (covel) => { const { tool, z, withPendingProposals } = covel.toolkit; covel.registerTool(tool({ name: 'make', description: 'Makes one.', parameters: z.object({ id: z.string() }), execute: async ({ id }, ctx) => withPendingProposals({ seats: ctx.world.seats.length, ui: [{ type: 'card', title: id }] }, [{ type: 'character.upsert', source: { pluginId: 'someone-else' }, payload: { id, name: id } }]) })); };",
        ),
        (
            "handler.js",
            "export default async (ctx) => { const before = ctx.world.characters.length; const made = await ctx.tools.call('make', { id: 'ana' }); const same = ctx.world.characters === ctx.world.characters; return { outcome: 'success', value: { before, after: ctx.world.characters.length, same, seats: made.seats } }; };",
        ),
    ]);
    let (_, _, turn) = play(vec![maker]).await;
    assert!(turn.committed, "{turn:#?}");
    let output = row(&turn, "maker").output.as_ref().unwrap();
    assert_eq!(*output.value(), json!({"before": 0, "after": 1, "same": true, "seats": 1}));
    assert_eq!(kinds(&turn), ["character.upserted", "ui.rendered"]);
    assert!(turn.changes.iter().all(|change| change.plugin_id == "maker"));
    assert!(row(&turn, "maker").reads_from.is_empty(), "own writes are no dependency");
}

/// A world folder with these files.
fn world(files: &[(&str, &str)]) -> (tempfile::TempDir, covel_graph::world::World) {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        std::fs::write(folder.path().join(path), text).unwrap();
    }
    let world = covel_graph::world::read_world(folder.path()).unwrap();
    (folder, world)
}

fn of_world(id: &str, locale: Option<&str>) -> NewSession {
    NewSession {
        id: Some(format!("{id}-{}", locale.unwrap_or("plain"))),
        world_id: Some(id.into()),
        locale: locale.map(str::to_owned),
        plugins: Some(vec!["r".into()]),
        ..NewSession::default()
    }
}

/// Covers: SEA-5
#[tokio::test(flavor = "multi_thread")]
async fn a_world_gives_a_new_session_its_people_lore_and_seats() {
    let yaml = "id: gate\nname: Gate\ndefaultLocale: en\nsupportedLocales: [en, zh-CN]\ncharacterSchema: { types: [guard], attributes: [{ id: hp, name: HP, type: number, category: stats, defaultValue: 3 }] }\ncharacters: cast.yaml\nlorebook: lore.yaml\n";
    let (_folder, gate) = world(&[
        ("world.yaml", yaml),
        (
            "cast.yaml",
            "- { id: kit, name: Kit, type: player }\n- { id: jo, name: Jo, type: player }\n- { id: olm, name: Olm, type: guard, description: Old. }\n",
        ),
        ("cast.zh-CN.yaml", "- { id: olm, name: 奥尔姆 }\n"),
        ("lore.yaml", "- { id: bell, content: It counts., strategy: constant }\n"),
    ]);
    let stage = stage(vec![reader("r", "pre-turn", "characters")], json!([])).await;
    stage.engine.add_world(gate);
    let session = stage.engine.create_session(of_world("gate", None)).await.unwrap();
    assert_eq!(session.seats[0].character_ids, ["kit", "jo"]);
    assert_eq!(session.seats[0].current_character_id.as_deref(), Some("kit"));
    let turn = stage.turn(&session.id, "x").await;
    assert_eq!(ids(seen(&turn, "r")), ["kit", "jo", "olm"]);
    assert_eq!(seen(&turn, "r")[2]["fields"], json!({"hp": 3}));
    assert!(row(&turn, "r").reads_from.is_empty());
    assert_eq!(stage.engine.lorebook(&session.id).unwrap()[0].value()["owner"], "world");
    assert_eq!(stage.engine.character_schema(&session.id).unwrap().unwrap().value()["version"], 1);
    let chinese = stage.engine.create_session(of_world("gate", Some("zh-CN"))).await.unwrap();
    assert_eq!(stage.engine.characters(&chinese.id).unwrap()[2].value()["name"], "奥尔姆");

    // The player's own hand: checked as proposals are, at once, and seats follow.
    let engine = &stage.engine;
    let bad = engine.put_character(&session.id, &json!({"id": "x", "name": "X", "type": "ghost"}), None).await;
    assert_eq!(bad.unwrap_err().code(), "character-invalid");
    engine.put_character(&session.id, &json!({"id": "mo", "name": "Mo", "type": "player"}), None).await.unwrap();
    assert_eq!(engine.seats(&session.id).unwrap()[0].character_ids, ["kit", "jo", "mo"]);
    engine
        .put_lore_entry(&session.id, &json!({"id": "bell", "content": "Mine.", "strategy": "constant"}))
        .await
        .unwrap();
    assert_eq!(engine.lorebook(&session.id).unwrap().len(), 2, "the world's entry of the same id stays");
    assert!(engine.delete_lore_entry(&session.id, "bell").await.unwrap());
    assert!(!engine.delete_lore_entry(&session.id, "bell").await.unwrap());
    assert_eq!(engine.lorebook(&session.id).unwrap()[0].value()["content"], "It counts.");
}

/// Covers: SWC-2
#[tokio::test(flavor = "multi_thread")]
async fn a_world_that_breaks_its_own_rules_or_lacks_a_keeper_starts_no_session() {
    let (_a, ghost) = world(&[
        ("world.yaml", "id: ghost\nname: G\ncharacters: cast.yaml\n"),
        ("cast.yaml", "- { id: x, name: X, type: ghost }\n"),
    ]);
    let dimensions =
        "id: tides\nname: T\ndimensions: { tide: { name: Tide, schema: { type: integer }, initialValue: 3 } }\n";
    let (_b, tides) = world(&[("world.yaml", dimensions)]);
    let stage = stage(vec![reader("r", "pre-turn", "worldRecord"), owner()], json!([])).await;
    stage.engine.add_world(ghost);
    stage.engine.add_world(tides);
    let refused = stage.engine.create_session(of_world("ghost", None)).await.unwrap_err();
    assert_eq!(refused.code(), "world-data-invalid");
    assert!(refused.to_string().contains("characters[0]"), "{refused}");
    let refused = stage.engine.create_session(of_world("tides", None)).await.unwrap_err();
    assert_eq!(refused.code(), "world-requirement-unmet");
    assert!(stage.engine.sessions().unwrap().is_empty());
    let both = NewSession { plugins: Some(vec!["r".into(), "keeper".into()]), ..of_world("tides", None) };
    let session = stage.engine.create_session(both).await.unwrap();
    let turn = stage.turn(&session.id, "idle").await;
    assert_eq!(seen(&turn, "r")["dimensions"]["tide"]["initialValue"], 3, "the author's definitions");
}

/// A native package of one runtime that makes the proposals of the player's message.
fn native(
    propose: impl Fn(&covel_exec::NativeContext<'_>) -> Result<(), String> + Send + Sync + 'static,
) -> NativePackage {
    NativePackage::new("native").runtime("w", TurnStage::PreTurn, move |context: &covel_exec::NativeContext<'_>| {
        propose(context).map(|()| covel_exec::NativeOutput::default())
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_hold_at_their_edge_and_what_is_kept_can_be_read_back() {
    let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    let stage = stage(Vec::new(), json!([])).await;
    let package = native(move |context| {
        let (what, count) = context.player_message().split_once(' ').unwrap();
        let count: usize = count.parse().unwrap();
        let message = |error: covel_abi::HostError| format!("{}: {}", error.code, error.message);
        match what {
            "people" => (0..count).try_for_each(|at| {
                context.propose("character.upsert", &json!({"id": format!("c{at}"), "name": format!("C{at}")}))
            }),
            "depth" => context.propose("state.patch", &json!({"table": "t", "field": "f", "value": nested(count)})),
            "attributes" => {
                let one = |at| json!({"id": format!("a{at}"), "name": "A", "type": "string", "category": "bio"});
                let all: Vec<Value> = (0..count).map(one).collect();
                context.propose("character.schema.set", &json!({"types": ["npc"], "attributes": all}))
            }
            _ => {
                let all: Vec<String> = (0..count).map(|at| format!("alias {at}")).collect();
                context.propose("character.upsert", &json!({"id": "c0", "name": "C", "aliases": all}))
            }
        }
        .map_err(message)
    });
    stage.engine.publish_native(package).await.unwrap();
    for (message, code) in [
        ("depth 100", ""),
        ("depth 101", "output-schema-invalid"),
        ("aliases 64", ""),
        ("aliases 65", "output-schema-invalid"),
        ("attributes 256", ""),
        ("attributes 257", "output-schema-invalid"),
        ("people 1024", ""),
        ("people 1025", "too-many-characters"),
    ] {
        let new = NewSession { id: Some(message.replace(' ', "-")), ..NewSession::default() };
        let session = stage.engine.create_session(new).await.unwrap().id;
        let turn = stage.turn(&session, message).await;
        let failed = row(&turn, "native/w").error.as_ref().map_or("", |error| error.message.as_str());
        assert!(
            if code.is_empty() { failed.is_empty() && turn.committed } else { failed.starts_with(code) },
            "{message}: {failed}"
        );
        if turn.committed {
            assert_eq!(stage.engine.turns(&session, 1).unwrap()[0].changes, turn.changes, "{message}");
        }
    }
}

/// Covers: SWC-2, SWC-3
#[tokio::test(flavor = "multi_thread")]
async fn receipts_settle_by_no_change_and_the_oldest_resolved_are_forgotten() {
    let script: Vec<Value> = (0..30).map(|_| json!({"content": "On."})).collect();
    let stage = stage(vec![owner(), narrator()], Value::Array(script)).await;
    let session = stage.session().await;
    for _ in 0..22 {
        let turn = stage.turn(&session, "go").await;
        assert!(turn.committed, "{turn:#?}");
        if turn.isolated.iter().any(|one| one.runtime_id == "keeper/tracker")
            || stage.engine.dimensions(&session).unwrap().value()["dimensions"]["tide"]["value"] == json!(0)
        {
            let version = stage.engine.dimensions(&session).unwrap().value()["dimensions"]["tide"]["version"].clone();
            let refill = json!({"updates": [{"id": "tide", "expectedVersion": version, "value": 9}]});
            assert!(stage.engine.execute(manual(&session, refill), None).await.unwrap().committed);
        }
    }
    let receipts = || stage.data(&session).into_iter().filter(|row| row.1 == "_dimension-settlements").count();
    assert_eq!(receipts(), 20);
    stage.turn(&session, "idle").await;
    let public = stage.engine.dimensions(&session).unwrap();
    let source = public.value()["dimensionSettlements"][0]["source"].clone();
    let version = public.value()["dimensions"]["tide"]["version"].as_u64().unwrap();
    let look = |version: u64| json!({"updates": [], "source": source, "settlement": "no-change", "readVersions": {"tide": version}});
    let stale = stage.engine.execute(manual(&session, look(version - 1)), None).await.unwrap();
    assert_eq!(stale.error.unwrap().code, "dimension-version-conflict");
    let settled = stage.engine.execute(manual(&session, look(version)), None).await.unwrap();
    assert_eq!(settled.changes[0].payload.value()["status"], "no-change");
    assert!(stage.turn(&session, "go").await.committed);
}

/// Covers: SWC-2
#[tokio::test(flavor = "multi_thread")]
async fn no_story_stands_on_dimensions_their_keeper_could_not_show() {
    let keeper = package(&[
        (
            "PLUGIN.md",
            "---\nid: keeper\nkind: plugin\ndescription: Shows dimensions.\nprovides: [world.dimensions@1]\nruntime:\n  type: function\n  schedule: { stage: pre-turn }\n  io: { output: { contract: world.dimensions@1 } }\n  function: { handler: ./handler.js }\n---\n",
        ),
        (
            "handler.js",
            "export default async (ctx) => { if (ctx.playerMessage === 'break') throw new Error('no'); return { outcome: 'success', value: ctx.world.dimensions }; };",
        ),
    ]);
    let stage = stage(vec![keeper, narrator()], told()).await;
    let session = stage.session().await;
    assert!(stage.turn(&session, "go").await.committed);
    let broken = stage.turn(&session, "break").await;
    assert_eq!(broken.error.unwrap().code, "dimension-snapshot-unavailable");
    assert_eq!(stage.engine.messages(&session, 10).unwrap().len(), 2);
    assert!(stage.turn(&session, "go").await.committed);
}

/// Covers: SEA-4
#[tokio::test(flavor = "multi_thread")]
async fn a_fork_has_the_people_lore_and_seats_of_its_moment() {
    let code = "export default async (ctx) => ({ outcome: 'success', effects: { characters: [{ id: `p${ctx.logicalTurn}`, name: `P${ctx.logicalTurn}`, type: 'player' }], lorebook: [{ id: `l${ctx.logicalTurn}`, content: 'x', strategy: 'constant' }] } });";
    let (stage, session, first) = play(vec![function("w", "{ stage: pre-turn }", "", "", code)]).await;
    let engine = &stage.engine;
    engine.switch_seat_character(&session, "player", "p1", None).await.unwrap();
    assert!(stage.turn(&session, "on").await.committed);
    engine.switch_seat_character(&session, "player", "p2", None).await.unwrap();
    let early = engine
        .fork_session(&session, covel_exec::ForkFrom::Turn(first.turn_id), Some("early".into()), None)
        .await
        .unwrap()
        .session;
    let now = engine.fork_session(&session, covel_exec::ForkFrom::Now, Some("now".into()), None).await.unwrap().session;
    assert_eq!(early.seats[0].character_ids, ["p1"]);
    assert_eq!((now.seats[0].character_ids.len(), now.seats[0].current_character_id.as_deref()), (2, Some("p2")));
    let people = engine.characters("early").unwrap();
    assert_eq!(
        (people.len(), &people[0].value()["id"], &people[0].value()["sessionId"]),
        (1, &json!("p1"), &json!("early"))
    );
    assert_eq!(engine.lorebook("early").unwrap().len(), 1);
    assert_eq!(engine.lorebook("now").unwrap().len(), 2);
}

/// Covers: SEA-2, SEA-3
#[tokio::test(flavor = "multi_thread")]
async fn the_acting_character_is_the_one_the_players_action_names() {
    let players =
        "{ characters: [{ id: 'ana', name: 'Ana', type: 'player' }, { id: 'bo', name: 'Bo', type: 'player' }] }";
    let acting = function(
        "acting",
        "{ stage: pre-turn }",
        "  io: { inputs: { turn: { from: { kernel: turn-digest@1 } } } }\n",
        "",
        "import { actingCharacterOf } from '@covel/plugin-handlers-utils'; export default (ctx) => ({ outcome: 'success', value: { who: actingCharacterOf(ctx.playerActions, ctx.world.characters, ctx.world.seats)?.id ?? null, passive: actingCharacterOf([], ctx.world.characters, ctx.world.seats)?.id ?? null, actions: ctx.playerActions, same: JSON.stringify(ctx.inputs.turn.value.actions) === JSON.stringify(ctx.playerActions) } });",
    );
    let (stage, session, first) = play(vec![writer("later", "audit", players), acting]).await;
    assert_eq!(row(&first, "acting").output.as_ref().unwrap().value()["who"], json!(null));
    stage.engine.switch_seat_character(&session, "player", "bo", None).await.unwrap();
    let turn = stage.turn(&session, "open").await;
    assert_eq!(
        *row(&turn, "acting").output.as_ref().unwrap().value(),
        json!({"who": "bo", "passive": "bo", "same": true,
               "actions": [{"type": "message", "content": "open", "seatId": "player", "characterId": "bo"}]})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_with_world_writes_is_replayed_to_the_same_bytes() {
    let people = "{ characters: [{ id: `c${ctx.logicalTurn}`, name: `C${ctx.logicalTurn}`, type: 'player' }], lorebook: [{ id: 'l', content: `${ctx.logicalTurn}`, strategy: 'constant' }], statePatches: [{ table: 't', field: 'f', value: ctx.random.int(0, 1000000) }], interactions: [{ interactionId: 'q', type: 'choice' }] }";
    let packages = vec![
        owner(),
        narrator(),
        writer("a-people", "pre-turn", people),
        reader("b-people", "post-turn", "characters"),
        reader("c-seats", "post-turn", "seats"),
        reader("d-schema", "post-turn", "characterSchema"),
    ];
    let (stage, session, first) = play(packages).await;
    let second = stage.turn(&session, "on").await;
    assert!(second.committed && !second.changes.is_empty(), "{second:#?}");
    for turn in [&first, &second] {
        let report = stage.engine.replay(&session, &turn.turn_id).await.unwrap();
        assert!(report.equal, "{report:#?}");
    }
    let trace = serde_json::to_value(stage.engine.trace(&session, &second.turn_id).unwrap()).unwrap().to_string();
    assert!(trace.contains("ctx.world.characters") && trace.contains("ctx.world.characterSchema"), "{trace}");
}
