use std::{collections::BTreeSet, path::Path};

use covel_model::{Message, Role, StoryContext, ToolCall, ToolChoice, ToolSpec};
use futures_util::StreamExt;
use serde_json::{Value, json};

use super::*;

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

const PLAYER: [&str; 20] = [
    "I look along the shelf for the missing book.",
    "I chalk the hours on the board.",
    "I go upstairs and search his desk.",
    "Down to the quay, then. I walk to the stair.",
    "I ask Mirren what she saw.",
    "I promise to tell her the hour and ask for help with the boat.",
    "I head for the ropewalk.",
    "I ask Ysolde about the order on her slate",
    "I take the rope down from its hook.",
    "I walk up to the Kettle, hungry.",
    "I talk with Bram about Venn",
    "I say the name Patience out loud.",
    "I go out the back to the salt pans.",
    "I ask Wick how to taste the sand",
    "I follow the prints out on to the flats.",
    "I stand still in the fog and listen.",
    "I follow the strange ripples to the chapel",
    "I call to the man in the coat.",
    "I write the last name in the book.",
    "I go back across the sand before the water comes.",
];

fn demo() -> Arc<SceneBook> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/worlds/low-bells");
    let world = covel_graph::world::read_world(&root).unwrap();
    let scenes = world.scenes.unwrap();
    Arc::new(SceneBook::from_json(world.id.as_str(), scenes.value()).unwrap())
}

fn story(world: &str, turn: u32, message: &str, seed: &str) -> StoryContext {
    StoryContext {
        world_id: Some(world.into()),
        session_id: "session".into(),
        logical_turn: turn,
        runtime_id: "narrator".into(),
        player_message: message.into(),
        locale: "en".into(),
        seed: seed.into(),
        story: true,
    }
}

/// The joined text, the calls and the finish reason of a reply.
fn reply(gateway: &OfflineGateway, request: ModelRequest) -> (String, Vec<ToolCall>, FinishReason) {
    let events: Vec<_> = block_on(gateway.stream(request, CancellationToken::new()).collect());
    let (mut text, mut calls, mut finish) = (String::new(), Vec::new(), None);
    for event in events {
        assert!(finish.is_none(), "nothing follows the end");
        match event.unwrap() {
            ModelEvent::Text(piece) => text.push_str(&piece),
            ModelEvent::ToolCall(call) => calls.push(call),
            ModelEvent::Done { finish: reason, .. } => finish = Some(reason),
            ModelEvent::Reasoning(_) => panic!("the storyteller does not reason aloud"),
        }
    }
    (text, calls, finish.unwrap())
}

/// Plays turns with a growing history, as a session would.
fn play(gateway: &OfflineGateway, world: &str, locale: &str, seed: &str, messages: &[&str]) -> Vec<String> {
    let mut history = Vec::new();
    let mut prose = Vec::new();
    for (n, message) in messages.iter().enumerate() {
        history.push(Message::new(Role::User, *message));
        let mut story = story(world, u32::try_from(n).unwrap() + 1, message, seed);
        story.locale = locale.into();
        let (text, calls, _) = reply(gateway, ModelRequest { messages: history.clone(), story, ..Default::default() });
        assert_eq!(calls, [], "no tool was offered");
        history.push(Message::new(Role::Assistant, text.clone()));
        prose.push(text);
    }
    prose
}

fn tool(name: &str, parameters: Value) -> ToolSpec {
    ToolSpec { name: name.into(), description: String::new(), parameters }
}

fn quest_tools() -> Vec<ToolSpec> {
    let add = json!({"type": "object", "required": ["id", "title"], "additionalProperties": false, "properties": {
        "id": {"type": "string", "pattern": "^[a-z][a-z0-9-]{0,47}$"}, "title": {"type": "string"}, "summary": {"type": "string"}}});
    let update = json!({"type": "object", "required": ["id"], "properties": {"id": {"type": "string"},
        "status": {"enum": ["open", "done", "failed"]}, "note": {"type": "string"}}});
    vec![tool("quest-add", add), tool("quest-update", update), tool("runtime-done", json!({"type": "object"}))]
}

#[test]
fn twenty_turns_in_the_demo_world_are_twenty_different_proses() {
    let gateway = OfflineGateway::new(vec![demo()]);
    for (locale, messages) in [("en", PLAYER), ("zh-CN", PLAYER)] {
        let prose = play(&gateway, "low-bells", locale, "one", &messages);
        let distinct: BTreeSet<&String> = prose.iter().collect();
        assert_eq!(distinct.len(), 20);
        // Not only the quotation differs: every turn tells a beat of its own.
        let book = demo();
        let beats: BTreeSet<_> = prose.iter().flat_map(|text| book.beats_in(text)).collect();
        assert_eq!(beats.len(), 20, "{locale}");
        for text in &prose {
            let paragraphs = text.split("\n\n").filter(|part| !part.starts_with("**")).count();
            assert!((2..=4).contains(&paragraphs), "{paragraphs} in {text}");
            assert!(!text.contains('{') && !text.contains('}'), "{text}");
            let glued =
                text.chars().zip(text.chars().skip(1)).any(|(a, b)| ".!?”".contains(a) && b.is_ascii_uppercase());
            assert!(!glued, "sentences are spaced: {text}");
        }
    }
}

#[test]
fn twenty_idle_turns_do_not_repeat_either() {
    let gateway = OfflineGateway::new(vec![demo()]);
    let prose = play(&gateway, "low-bells", "en", "idle", &["I wait."; 30]);
    assert_eq!(prose.iter().collect::<BTreeSet<_>>().len(), 30);
    let book = demo();
    let beats: BTreeSet<_> = prose.iter().flat_map(|text| book.beats_in(text)).collect();
    assert_eq!(beats.len(), 30, "the story drifts on by itself");
}

#[test]
fn a_seed_fixes_the_story_and_another_changes_it() {
    let gateway = OfflineGateway::new(vec![demo()]);
    let messages = ["I wait."; 20];
    let one = play(&gateway, "low-bells", "en", "one", &messages);
    assert_eq!(one, play(&gateway, "low-bells", "en", "one", &messages));
    let two = play(&gateway, "low-bells", "en", "two", &messages);
    let same = one.iter().zip(&two).filter(|(a, b)| a == b).count();
    assert!(same < 5, "{same} of 20 turns are the same under another seed");
    // Without a seed the session is the seed.
    assert_ne!(play(&gateway, "low-bells", "en", "", &messages), one);
}

#[test]
fn the_story_follows_the_player() {
    let gateway = OfflineGateway::new(vec![demo()]);
    let prose = play(&gateway, "low-bells", "en", "one", &PLAYER);
    assert!(prose[0].contains("**The Tide Office**") && prose[0].contains("missing volume"), "{}", prose[0]);
    assert!(prose[3].contains("**The Bell Stair**"), "{}", prose[3]);
    assert!(prose[4].contains("He went by me at six"), "{}", prose[4]);
    assert!(prose[6].contains("**The Ropewalk**"));
    assert!(prose[8].contains("twist of paper"), "{}", prose[8]);
    assert!(prose[16].contains("**The Drowned Chapel**"));
    assert!(prose[17].contains("One moment"), "{}", prose[17]);
    // A far place is reached one exit at a time.
    let far = play(&gateway, "low-bells", "en", "one", &["", "I go to the wreck of the Patience."]);
    assert!(far[1].starts_with('“') && far[1].contains("**"), "{}", far[1]);
    // Going is spoken of as going, whatever else the player means to do there.
    assert!(
        prose[14].contains("the hour before") || prose[14].contains("set off") || prose[14].contains("some day"),
        "{}",
        prose[14]
    );
    // Looking is not going.
    let still = play(&gateway, "low-bells", "en", "one", &["", "I look at the lighthouse"]);
    assert!(!still[1].contains("**"), "{}", still[1]);
}

#[test]
fn the_players_words_are_quoted_safely() {
    let gateway = OfflineGateway::new(vec![demo()]);
    let prose = play(&gateway, "low-bells", "en", "one", &["", "**Bold** {weather} \"quote\"\nnew line <script>"]);
    assert!(prose[1].contains("Bold weather quote new line script"), "{}", prose[1]);
    assert!(!prose[1].contains("<script>") && !prose[1].contains("**Bold"));
}

#[test]
fn chinese_sessions_read_chinese_and_traditional_ones_the_canonical_text() {
    let gateway = OfflineGateway::new(vec![demo()]);
    let prose = play(&gateway, "low-bells", "zh-Hans", "one", &["", "我问米伦看见了什么", "我走到码头的钟阶"]);
    assert!(prose[0].contains("**潮汐所**"), "{}", prose[0]);
    assert!(prose[1].contains("我问米伦看见了什么"));
    assert!(prose[2].contains("**钟阶**"), "{}", prose[2]);
    let ascii = prose.iter().flat_map(|text| text.chars()).filter(char::is_ascii_alphabetic).count();
    assert_eq!(ascii, 0, "every text is translated");
    let prose = play(&gateway, "low-bells", "zh-Hant", "one", &[""]);
    assert!(prose[0].contains("The Tide Office"));
}

#[test]
fn a_lost_history_still_tells_different_turns() {
    let gateway = OfflineGateway::new(vec![demo()]);
    let tell = |turn| {
        let story = story("low-bells", turn, "I wait.", "one");
        reply(
            &gateway,
            ModelRequest { messages: vec![Message::new(Role::User, "I wait.")], story, ..Default::default() },
        )
        .0
    };
    let texts: BTreeSet<String> = (2..=21).map(tell).collect();
    assert_eq!(texts.len(), 20);
}

#[test]
fn an_unknown_world_is_told_from_the_generic_book() {
    let gateway = OfflineGateway::new(Vec::new());
    for locale in ["en", "zh-CN"] {
        let prose = play(&gateway, "nowhere", locale, "one", &PLAYER);
        assert_eq!(prose.iter().collect::<BTreeSet<_>>().len(), 20);
        assert!(prose.iter().all(|text| text.split("\n\n").count() >= 2));
    }
    let no_world =
        ModelRequest { story: StoryContext { world_id: None, ..story("", 1, "I look.", "s") }, ..Default::default() };
    assert!(!reply(&gateway, no_world).0.is_empty());
}

#[test]
fn replies_come_in_small_pieces_and_can_be_cancelled() {
    let gateway = OfflineGateway::new(vec![demo()]);
    let request = ModelRequest { story: story("low-bells", 1, "I look.", "one"), ..Default::default() };
    let pieces: Vec<_> = block_on(gateway.stream(request.clone(), CancellationToken::new()).collect());
    assert!(pieces.len() > 20, "{}", pieces.len());
    assert!(
        matches!(pieces.last(), Some(Ok(ModelEvent::Done { finish: FinishReason::Stop, usage, .. })) if usage.output_tokens > 50)
    );

    let cancel = CancellationToken::new();
    let mut stream = gateway.stream(request.clone(), cancel.clone());
    assert!(matches!(block_on(stream.next()), Some(Ok(ModelEvent::Text(_)))));
    cancel.cancel();
    let error = block_on(stream.next()).unwrap().unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Cancelled);
    assert!(block_on(stream.next()).is_none());

    let short = ModelRequest { max_output_tokens: Some(10), ..request };
    let (text, _, finish) = reply(&gateway, short);
    assert_eq!(finish, FinishReason::Length);
    assert!(words::tokens(&text) <= 10 && !text.is_empty());
}

/// One agent request after a story turn, then its loop until the agent has nothing more to call.
fn agent_loop(gateway: &OfflineGateway, prose: &str, tools: Vec<ToolSpec>, locale: &str) -> (Vec<ToolCall>, String) {
    let mut messages = vec![
        Message::new(Role::System, "<runtime-inputs>prose written this turn</runtime-inputs>"),
        Message::new(Role::User, "I look."),
        Message::new(Role::Assistant, prose),
        Message::new(Role::User, "The text above was written this turn."),
    ];
    let mut calls = Vec::new();
    for _ in 0..5 {
        let mut story = story("low-bells", 1, "I look.", "one");
        story.story = false;
        story.runtime_id = "quest-log".into();
        story.locale = locale.into();
        let request = ModelRequest { messages: messages.clone(), tools: tools.clone(), story, ..Default::default() };
        let (text, made, finish) = reply(gateway, request);
        if made.is_empty() {
            return (calls, text);
        }
        assert_eq!(finish, FinishReason::ToolCalls);
        let done = made.iter().any(|call| call.name == "runtime-done");
        messages.push(Message { tool_calls: made.clone(), ..Message::new(Role::Assistant, text) });
        messages.extend(made.iter().map(|call| Message::tool_result(&call.id, r#"{"success":true}"#)));
        calls.extend(made);
        if done {
            return (calls, String::new());
        }
    }
    panic!("the loop does not end");
}

#[test]
fn an_agent_makes_the_calls_the_scene_asks_for_and_ends() {
    let gateway = OfflineGateway::new(vec![demo()]);
    let prose = &play(&gateway, "low-bells", "en", "one", &["I search the shelf for the book"])[0];
    let (calls, _) = agent_loop(&gateway, prose, quest_tools(), "en");
    let names: Vec<_> = calls.iter().map(|call| call.name.as_str()).collect();
    assert_eq!(names, ["quest-add", "runtime-done"]);
    let arguments: Value = serde_json::from_str(&calls[0].arguments).unwrap();
    assert_eq!(arguments["id"], "find-venn");
    let ids: BTreeSet<_> = calls.iter().map(|call| &call.id).collect();
    assert_eq!(ids.len(), calls.len());

    let prose = &play(&gateway, "low-bells", "zh-CN", "one", &["我翻书架找潮簿"])[0];
    let (calls, _) = agent_loop(&gateway, prose, quest_tools(), "zh-CN");
    assert!(calls[0].arguments.contains("找到奥尔德斯"), "{}", calls[0].arguments);

    // Escaped in a data block instead of the history, the story is recognised all the same.
    let prose = &play(&gateway, "low-bells", "en", "one", &["I search the shelf for the book"])[0];
    let mut story = story("low-bells", 1, "I look.", "one");
    story.story = false;
    let escaped = json!({ "scene": prose }).to_string().replace('"', "&quot;");
    let messages = vec![Message::new(Role::System, escaped)];
    let (_, calls, _) = reply(&gateway, ModelRequest { messages, tools: quest_tools(), story, ..Default::default() });
    assert_eq!(calls[0].name, "quest-add");
}

#[test]
fn no_tool_is_called_that_is_not_offered_or_does_not_fit() {
    let gateway = OfflineGateway::new(vec![demo()]);
    let prose = &play(&gateway, "low-bells", "en", "one", &["I search the shelf for the book"])[0];
    let (calls, text) = agent_loop(&gateway, prose, vec![tool("other", json!({"type": "object"}))], "en");
    assert_eq!(calls, []);
    assert!(!text.is_empty());
    let strict = json!({"type": "object", "required": ["colour"], "properties": {"colour": {"type": "string"}}});
    let (calls, _) = agent_loop(&gateway, prose, vec![tool("quest-add", strict)], "en");
    assert_eq!(calls, [], "arguments that do not fit are not sent");
    // A story without a place in the book asks for nothing.
    let (calls, _) = agent_loop(&gateway, "Somebody else wrote this.", quest_tools(), "en");
    assert_eq!(calls.iter().map(|call| call.name.as_str()).collect::<Vec<_>>(), ["runtime-done"]);
}

#[test]
fn a_story_calls_its_tools_before_the_prose() {
    let material = json!({"default": {"scenes": [{"id": "a", "title": "A", "opening": ["You arrive."], "beats": [
        {"id": "b", "prose": ["A bell begins somewhere over the water."], "tools": [{"event": "bell.rung", "data": {"n": 1}}]}]}]}});
    let gateway = OfflineGateway::new(vec![Arc::new(SceneBook::from_json("w", &material).unwrap())]);
    let emit = tool(
        "emit-event",
        json!({"type": "object", "required": ["topic"], "properties": {"topic": {"enum": ["bell.rung"]}, "data": {}}}),
    );
    let mut request = ModelRequest { tools: vec![emit], story: story("w", 1, "I wait.", "s"), ..Default::default() };
    request.messages.push(Message::new(Role::User, "I wait."));
    let (text, calls, finish) = reply(&gateway, request.clone());
    assert_eq!((text.as_str(), finish), ("", FinishReason::ToolCalls));
    assert_eq!(calls[0].arguments, r#"{"topic":"bell.rung","data":{"n":1}}"#);
    request.messages.push(Message { tool_calls: calls.clone(), ..Message::new(Role::Assistant, "") });
    request.messages.push(Message::tool_result(&calls[0].id, "{}"));
    let (text, calls, finish) = reply(&gateway, request);
    assert!(text.contains("A bell begins"));
    assert_eq!((calls, finish), (vec![], FinishReason::Stop));
}

#[test]
fn tool_choice_is_honoured() {
    let gateway = OfflineGateway::new(vec![demo()]);
    let mut story = story("low-bells", 3, "I wait.", "s");
    story.story = false;
    let ask = |choice, tools: Vec<ToolSpec>, messages: Vec<Message>| {
        reply(
            &gateway,
            ModelRequest { tool_choice: choice, tools, messages, story: story.clone(), ..Default::default() },
        )
        .1
    };
    let named =
        ask(ToolChoice::Named("quest-add".into()), quest_tools(), vec![Message::new(Role::Assistant, "She waits.")]);
    assert_eq!(named[0].name, "quest-add");
    let arguments: Value = serde_json::from_str(&named[0].arguments).unwrap();
    assert!(schema::fits(&quest_tools()[0].parameters, &arguments), "{arguments}");
    assert_eq!(ask(ToolChoice::Required, quest_tools(), vec![])[0].name, "runtime-done");
    // When ending was refused, a business tool is called.
    let done = ToolCall { id: "x".into(), name: "runtime-done".into(), arguments: "{}".into() };
    let refused = vec![Message { tool_calls: vec![done], ..Message::new(Role::Assistant, "") }];
    assert_eq!(ask(ToolChoice::Required, quest_tools(), refused)[0].name, "quest-add");
    assert_eq!(ask(ToolChoice::Required, vec![], vec![]), []);
    assert_eq!(ask(ToolChoice::Named("absent".into()), quest_tools(), vec![])[0].name, "runtime-done");
}

#[test]
fn a_response_schema_is_answered_with_an_instance() {
    let gateway = OfflineGateway::new(vec![demo()]);
    let mut story = story("low-bells", 3, "I wait.", "s");
    story.story = false;
    let schema = json!({"type": "object", "required": ["mood", "score"], "properties": {"mood": {"enum": ["calm", "tense"]},
        "score": {"type": "integer", "minimum": 2}, "note": {"type": "string"}}, "additionalProperties": false});
    let (text, _, finish) =
        reply(&gateway, ModelRequest { response_schema: Some(schema.clone()), story, ..Default::default() });
    assert_eq!(finish, FinishReason::Stop);
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), json!({"mood": "calm", "score": 2}));
}

#[test]
fn broken_scene_material_is_refused_with_a_code() {
    let beat = |text: &str| json!({"id": "b", "prose": [text]});
    let scene = |beats: Value| json!({"id": "a", "title": "A", "opening": ["You arrive."], "beats": beats});
    let long = "A long enough run of plain words.";
    let book = |scenes: Value| json!({"default": {"scenes": scenes}});
    for (material, code) in [
        (json!(3), "scenes-shape-invalid"),
        (json!({"default": {"scenes": [], "extra": 1}}), "scenes-shape-invalid"),
        (book(json!([])), "scenes-incomplete"),
        (book(json!([scene(json!([]))])), "scenes-incomplete"),
        (book(json!([scene(json!([beat("short")]))])), "scenes-beat-ambiguous"),
        (book(json!([scene(json!([beat(long), {"id": "c", "prose": [long]}]))])), "scenes-beat-ambiguous"),
        (book(json!([scene(json!([beat(long), beat("Another run of plain words.")]))])), "scenes-duplicate"),
        (book(json!([scene(json!([beat("With a {slot} and a long run of words.")]))])), "scenes-slot-unknown"),
        (book(json!([scene(json!([beat("With a {broken slot and more words")]))])), "scenes-template-invalid"),
        (json!({"default": {"opening": "x", "scenes": [scene(json!([beat(long)]))]}}), "scenes-name-unknown"),
        (
            json!({"default": {"scenes": [scene(json!([beat(long)]))]}, "locales": {"zh-CN": {"scenes": [{"id": "zz"}]}}}),
            "scenes-name-unknown",
        ),
        (book(json!([scene(json!([{"id": "b", "prose": vec![long; MAX_LIST + 1]}]))])), "scenes-limit-exceeded"),
    ] {
        let error = SceneBook::from_json("w", &material).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
    }
}

#[test]
fn hostile_requests_get_an_ordinary_answer() {
    let gateway = OfflineGateway::new(vec![demo()]);
    for message in ["__proto__", "\u{0}\u{0}", "{", "）".repeat(10_000).as_str(), "go ".repeat(50_000).as_str()] {
        let mut story = story("low-bells", u32::MAX, message, "s");
        let request = ModelRequest {
            messages: vec![Message::new(Role::Assistant, message)],
            story: story.clone(),
            ..Default::default()
        };
        let (text, _, _) = reply(&gateway, request);
        assert!(!text.is_empty() && text.len() < 20_000);
        story.story = false;
        let tools = vec![tool("x", json!({"$ref": "#"})), tool("", json!(null))];
        let request = ModelRequest { tools, tool_choice: ToolChoice::Required, story, ..Default::default() };
        assert!(!reply(&gateway, request).0.is_empty());
    }
}

#[test]
fn the_demo_world_is_large_enough() {
    let (scenes, beats) = demo().size();
    assert!(scenes >= 8 && beats >= 20, "{scenes} scenes, {beats} beats");
}
