//! What goes out and how replies are read, without a socket.

use covel_model::{
    FinishReason, Message, ModelErrorKind, ModelRequest, Role, StoryContext, ToolCall, ToolChoice, ToolSpec, Usage,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::config::{LlmConfig, Surroundings};
use crate::limits::MAX_OUTPUT_BYTES;
use crate::protocol::{Ending, Piece, Progress, ToolNames};
use crate::sse::SseParser;

fn slot(provider: &str, model: &str, fields: &str) -> Slot {
    let text = format!("[covel.story]\nprovider = \"{provider}\"\nmodel = \"{model}\"\n{fields}\n");
    let surroundings = Surroundings { variable: &|_| None, loopback_allowed: true };
    LlmConfig::parse(text.as_bytes(), &surroundings).expect("a configuration").slots()[0].clone()
}

fn body(slot: &Slot, request: &ModelRequest) -> Value {
    let wire = OpenAiChat.write(slot, request, Mode::Stream).expect("a request");
    assert_eq!(wire.path, "/chat/completions");
    serde_json::from_slice(&wire.body).expect("JSON")
}

fn roll() -> ToolSpec {
    ToolSpec { name: "roll_dice".into(), description: "Rolls.".into(), parameters: json!({"type": "object"}) }
}

fn asked(text: &str) -> ModelRequest {
    ModelRequest { messages: vec![Message::new(Role::User, text)], ..ModelRequest::default() }
}

#[test]
fn a_plain_request() {
    let request = ModelRequest { system: "Tell.".into(), ..asked("Hi") };
    let expected = json!({
        "model": "deepseek-v4-flash",
        "messages": [{"role": "system", "content": "Tell."}, {"role": "user", "content": "Hi"}],
        "max_tokens": 16384,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    assert_eq!(body(&slot("deepseek", "deepseek-v4-flash", ""), &request), expected);
    let whole = OpenAiChat.write(&slot("deepseek", "m", ""), &request, Mode::Whole).expect("a request");
    let whole: Value = serde_json::from_slice(&whole.body).expect("JSON");
    assert_eq!((whole.get("stream"), whole.get("stream_options")), (None, None));
}

#[test]
fn tools_and_their_history() {
    let call = |id: &str, name: &str, arguments: &str| ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
    };
    let mut assistant = Message::new(Role::Assistant, "");
    assistant.tool_calls = vec![call("c1", "roll_dice", "{\"sides\":6}"), call("c2", "roll_dice", "{broken"), call("c3", "dice.roll", "")];
    let request = ModelRequest {
        messages: vec![Message::new(Role::User, "Roll"), assistant, Message::tool_result("c1", "4")],
        tools: vec![roll(), ToolSpec { name: "dice.roll".into(), ..roll() }],
        tool_choice: ToolChoice::Named("dice.roll".into()),
        ..ModelRequest::default()
    };
    let body = body(&slot("openai", "gpt-4o", ""), &request);
    let calls = &body["messages"][1]["tool_calls"];
    assert_eq!(body["messages"][1]["content"], Value::Null);
    assert_eq!(calls[0], json!({"id": "c1", "type": "function", "function": {"name": "roll_dice", "arguments": "{\"sides\":6}"}}));
    assert_eq!(calls[1]["function"]["arguments"], json!({"invalidArguments": "{broken"}).to_string());
    assert_eq!(calls[2]["function"]["arguments"], "{}");
    assert_eq!(body["messages"][2], json!({"role": "tool", "content": "4", "tool_call_id": "c1"}));
    let sent = body["tools"][1]["function"]["name"].as_str().expect("a name");
    assert!(sent.starts_with("dice_roll_"));
    assert_eq!(calls[2]["function"]["name"], sent);
    assert_eq!(body["tool_choice"], json!({"type": "function", "function": {"name": sent}}));
    assert_eq!(body["tools"][0]["function"]["parameters"], json!({"type": "object"}));
}

#[test]
fn an_impossible_tool_choice_is_not_sent() {
    for choice in [ToolChoice::Required, ToolChoice::Named("other".into())] {
        let request = ModelRequest { tool_choice: choice, ..asked("Hi") };
        let refused = OpenAiChat.write(&slot("openai", "m", ""), &request, Mode::Stream);
        assert_eq!(refused.map_err(|fault| fault.kind).err(), Some(ModelErrorKind::Config));
    }
}

/// Covers: MOD-5
#[test]
fn a_schema_turns_json_mode_on_and_joins_the_instructions() {
    let request = ModelRequest { system: "Judge.".into(), response_schema: Some(json!({"type": "array"})), ..asked("Hi") };
    let with = body(&slot("openai", "gpt-4o", ""), &request);
    assert_eq!(with["response_format"], json!({"type": "json_object"}));
    let system = with["messages"][0]["content"].as_str().expect("text");
    assert!(system.starts_with("Judge.\n\n") && system.ends_with("{\"type\":\"array\"}"), "{system}");
    let without = body(&slot("openai", "gpt-4o", "features = [\"streaming\"]"), &request);
    assert_eq!((without.get("response_format"), &without["messages"]), (None, &with["messages"]));
}

/// Covers: MOD-4
#[test]
fn a_call_can_only_lower_the_output_budget() {
    for (fields, call, expected) in [
        ("", None, 16_384),
        ("", Some(100), 100),
        ("", Some(50_000), 16_384),
        ("maxOutputTokens = 32000", None, 32_000),
        ("maxOutputTokens = 32000", Some(40_000), 32_000),
        ("contextWindow = 8192", None, 4_096),
        ("contextWindow = 8192\nmaxOutputTokens = 6000", None, 6_000),
    ] {
        let request = ModelRequest { max_output_tokens: call, ..asked("Hi") };
        assert_eq!(body(&slot("xai", "grok", fields), &request)["max_tokens"], expected, "{fields} {call:?}");
    }
    for model in ["gpt-5-mini", "o3", "openai/o4-mini", "gpt-6"] {
        let body = body(&slot("openrouter", model, ""), &asked("Hi"));
        assert_eq!((&body["max_completion_tokens"], body.get("max_tokens")), (&json!(16384), None), "{model}");
    }
}

#[test]
fn reasoning_is_asked_for_in_each_providers_words() {
    for (provider, model, fields, off, field, expected) in [
        ("deepseek", "m", "", true, "thinking", json!({"type": "disabled"})),
        ("deepseek", "m", "reasoningEffort = \"high\"", false, "reasoning_effort", json!("high")),
        ("dashscope", "m", "reasoningEffort = \"automatic\"", false, "enable_thinking", json!(true)),
        ("dashscope", "m", "reasoningEffort = \"high\"", true, "enable_thinking", json!(false)),
        ("openrouter", "m", "reasoningEffort = \"low\"", false, "reasoning", json!({"effort": "low"})),
        ("openai", "gpt-5.2", "", true, "reasoning_effort", json!("none")),
        ("openai", "gpt-5-mini", "", true, "reasoning_effort", json!("minimal")),
        ("openai", "gpt-4o", "", true, "reasoning_effort", Value::Null),
        ("openai", "o3", "reasoningEffort = \"medium\"", false, "reasoning_effort", json!("medium")),
        ("openai", "o3", "reasoningEffort = \"provider-default\"", false, "reasoning_effort", Value::Null),
        ("xai", "m", "providerOptions.xai.reasoningEffort = \"low\"", false, "reasoning_effort", json!("low")),
    ] {
        let request = ModelRequest { reasoning_disabled: off, ..asked("Hi") };
        let body = body(&slot(provider, model, fields), &request);
        assert_eq!(body.get(field).unwrap_or(&Value::Null), &expected, "{provider} {model} {fields} {off}");
    }
}

#[test]
fn options_are_merged_and_owned_fields_stay() {
    let fields = r#"
providerRequestMetadata = { temperature = 0.5, top_p = 0.9, stream = false, imageWire = "x" }
[covel.story.providerOptions.openai-chat-v1]
seed = 7
lateSystemAsUser = true
extraBody = { top_p = 0.8, model = "other", messages = [] }
[covel.story.providerOptions.groq]
seed = 8
parallelToolCalls = false
store = false
user = "someone"
promptCacheKey = "mine"
[covel.story.providerOptions.other]
seed = "not looked at"
"#;
    let mut request = asked("Hi");
    request.messages.insert(0, Message::new(Role::System, "early"));
    request.messages.push(Message::new(Role::System, "late"));
    let slot = slot("groq", "m", fields);
    let body = body(&slot, &ModelRequest { tools: vec![roll()], ..request });
    let expected = json!({
        "model": "m", "temperature": 0.5, "top_p": 0.8, "stream": true, "seed": 8, "parallel_tool_calls": false,
        "store": false, "user": "someone", "prompt_cache_key": "mine",
    });
    for (name, value) in expected.as_object().expect("object") {
        assert_eq!(&body[name], value, "{name}");
    }
    assert_eq!(body.get("imageWire"), None);
    let roles: Vec<_> = body["messages"].as_array().expect("list").iter().map(|m| m["role"].as_str()).collect();
    assert_eq!(roles, [Some("system"), Some("user"), Some("user")]);
}

#[test]
fn the_cache_key_names_session_and_runtime_only_as_a_digest() {
    let story = StoryContext { session_id: "session-1".into(), runtime_id: "narrator".into(), ..StoryContext::default() };
    let request = ModelRequest { story, ..asked("Hi") };
    let openai = body(&slot("openai", "gpt-4o", ""), &request);
    let key = openai["prompt_cache_key"].as_str().expect("a key");
    assert!(key.len() == 38 && key.starts_with("covel-"));
    assert!(!openai.to_string().contains("session-1") && !openai.to_string().contains("narrator"));
    assert_eq!(body(&slot("groq", "m", ""), &request).get("prompt_cache_key"), None);
    let off = slot("openai", "gpt-4o", "providerOptions.openai.promptCacheKey = false");
    assert_eq!(body(&off, &request).get("prompt_cache_key"), None);
}

#[test]
fn a_request_that_is_too_large_is_not_sent() {
    let request = asked(&"x".repeat(MAX_OUTPUT_BYTES * 4));
    let refused = OpenAiChat.write(&slot("openai", "m", ""), &request, Mode::Stream);
    assert_eq!(refused.map_err(|fault| fault.kind).err(), Some(ModelErrorKind::BadRequest));
}

fn reader() -> ChatReader {
    ChatReader::new(&WireRequest { path: String::new(), body: b"request".to_vec(), tool_names: ToolNames::default() })
}

/// Reads a stream as the exchange does.
fn read(bytes: &[u8]) -> Result<(String, String, Ending), Fault> {
    let (mut reader, mut parser, mut pieces) = (reader(), SseParser::new(), Vec::new());
    parser.push(bytes);
    while let Some(event) = parser.next_event().map_err(|error| Fault::malformed(error.to_string()))? {
        if reader.event(&event, &mut pieces)? == Progress::Closed {
            break;
        }
    }
    let (mut text, mut reasoning) = (String::new(), String::new());
    for piece in pieces {
        match piece {
            Piece::Text(part) => text.push_str(&part),
            Piece::Reasoning(part) => reasoning.push_str(&part),
            Piece::ToolFragment => {}
        }
    }
    Ok((text, reasoning, reader.end()?))
}

fn stream(deltas: &[Value], finish: &str) -> Vec<u8> {
    let mut out = String::new();
    for delta in deltas {
        out.push_str(&format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta}]})));
    }
    out.push_str(&format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})));
    out.into_bytes()
}

fn calls(deltas: &[Value]) -> Vec<(String, String, String)> {
    let (_, _, ending) = read(&stream(deltas, "tool_calls")).expect("a good stream");
    ending.tool_calls.into_iter().map(|call| (call.id, call.name, call.arguments)).collect()
}

fn fragment(index: Option<u32>, id: &str, name: &str, arguments: &str) -> Value {
    let mut call = json!({"function": {"arguments": arguments}});
    if let Some(index) = index {
        call["index"] = index.into();
    }
    if !id.is_empty() {
        call["id"] = id.into();
    }
    if !name.is_empty() {
        call["function"]["name"] = name.into();
    }
    json!({"tool_calls": [call]})
}

#[test]
fn fragments_find_their_calls_in_every_dialect() {
    let expected = |rows: &[(&str, &str, &str)]| -> Vec<_> {
        rows.iter().map(|(a, b, c)| ((*a).to_owned(), (*b).to_owned(), (*c).to_owned())).collect()
    };
    let one = expected(&[("a", "f", "{\"x\":1}")]);
    // The name repeated in every fragment; the name in parts; no index at all.
    assert_eq!(calls(&[fragment(Some(0), "a", "f", "{\"x\""), fragment(Some(0), "a", "f", ":1}")]), one);
    assert_eq!(calls(&[fragment(None, "a", "f", "{\"x\""), fragment(None, "", "", ":1}")]), one);
    let long = expected(&[("a", "roll_dice", "{}")]);
    assert_eq!(calls(&[fragment(Some(0), "a", "roll", ""), fragment(Some(0), "", "_dice", "{}")]), long);
    // Every call under index 0, and fragments for two calls in turn.
    let two = expected(&[("a", "f", "{}"), ("b", "g", "{}")]);
    assert_eq!(calls(&[fragment(Some(0), "a", "f", "{}"), fragment(Some(0), "b", "g", "{}")]), two);
    let turns = [fragment(Some(3), "a", "f", "{"), fragment(Some(1), "b", "g", "{"), fragment(Some(3), "", "", "}"), fragment(Some(1), "", "", "}")];
    assert_eq!(calls(&turns), two);
    // No arguments, and arguments as an object.
    assert_eq!(calls(&[fragment(Some(0), "a", "roll_dice", "")]), long);
    let object = json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": {"x": 1}}}]});
    assert_eq!(calls(&[object]), one);
}

#[test]
fn missing_and_double_ids_are_replaced_and_stay_the_same() {
    let deltas = [fragment(Some(0), "", "f", "{}"), fragment(Some(1), "x", "f", "{}"), fragment(Some(2), "x", "f", "{}")];
    let first = calls(&deltas);
    assert_eq!(first, calls(&deltas));
    assert!(first[0].0.starts_with("call_") && first[1].0 == "x" && first[2].0.starts_with("call_"));
    assert_ne!(first[0].0, first[2].0);
}

#[test]
fn a_cut_off_call_is_not_delivered() {
    let deltas = [fragment(Some(0), "a", "f", "{\"x\":1}"), fragment(Some(1), "b", "f", "{\"x\":")];
    let (_, _, ending) = read(&stream(&deltas, "length")).expect("a good stream");
    assert_eq!(ending.finish, FinishReason::Length);
    assert_eq!(ending.tool_calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["a"]);
    // Broken arguments of a call that claims to be complete are the caller's to answer.
    let (_, _, ending) = read(&stream(&deltas, "tool_calls")).expect("a good stream");
    assert_eq!(ending.tool_calls[1].arguments, "{\"x\":");
}

#[test]
fn shapes_that_break_the_protocol_are_errors() {
    for delta in [
        json!({"content": 3}), json!({"content": {"a": 1}}), json!("text"), json!([1]), json!({"tool_calls": "x"}),
        json!({"tool_calls": [7]}), json!({"tool_calls": [{"index": 0, "function": {"arguments": 5}}]}),
    ] {
        let fault = read(&stream(std::slice::from_ref(&delta), "stop")).expect_err("broken");
        assert_eq!(fault.kind, ModelErrorKind::Server, "{delta}");
    }
    for data in ["3", "[]", "\"x\"", "{\"choices\": 4}", "{\"choices\": [4]}", "{\"choices\":[{\"finish_reason\":4}]}", "nonsense"] {
        let fault = read(format!("data: {data}\n\n").as_bytes()).expect_err("broken");
        assert_eq!(fault.kind, ModelErrorKind::Server, "{data}");
    }
    assert!(read(&stream(&[fragment(Some(0), "a", "", "{}")], "tool_calls")).is_err(), "a call without a name");
    assert!(read(&stream(&[json!({"content": "x"})], "tool_calls")).is_err(), "calls announced and not made");
    let deep = format!("data: {}\n\n", "[".repeat(100_000));
    assert!(read(deep.as_bytes()).is_err());
}

#[test]
fn unknown_finish_words_and_other_choices_are_survived() {
    let (text, _, ending) = read(&stream(&[json!({"content": "a"})], "eos_token")).expect("a good stream");
    assert_eq!((text.as_str(), ending.finish), ("a", FinishReason::Other));
    let other = "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"no\"},\"finish_reason\":\"stop\"}]}\n\n";
    assert!(read(other.as_bytes()).is_err(), "the end of another choice is not the end");
    let empty = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"\"}]}\n\ndata: [DONE]\n\n";
    assert!(read(empty.as_bytes()).is_err(), "an empty finish reason is none");
    let odd_usage = "data: {\"usage\":{\"prompt_tokens\":-3,\"completion_tokens\":\"many\"},\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    assert_eq!(read(odd_usage.as_bytes()).expect("good").2.usage, Usage::default());
}

#[test]
fn endless_replies_end() {
    let many: Vec<Value> = (0..2_000).map(|index| fragment(Some(index), "", "f", "{}")).collect();
    let fault = read(&stream(&many, "tool_calls")).expect_err("too many");
    assert!(!fault.retriable && fault.text.contains("1024"), "{}", fault.text);
    let long = vec![json!({"content": "x".repeat(MAX_OUTPUT_BYTES / 16)}); 17];
    assert!(!read(&stream(&long, "stop")).expect_err("too long").retriable);
}

const FIXTURES: [(&str, &[u8]); 3] = [
    ("text", include_bytes!("../../../tests/fixtures/chat/text.sse")),
    ("parallel-tool-calls", include_bytes!("../../../tests/fixtures/chat/parallel-tool-calls.sse")),
    ("reasoning", include_bytes!("../../../tests/fixtures/chat/reasoning.sse")),
];

#[test]
fn a_stream_cut_anywhere_is_whole_or_an_error() {
    for (name, bytes) in FIXTURES {
        let whole = read(bytes).expect("a good stream");
        let mut good = 0;
        for cut in 0..bytes.len() {
            if let Ok((text, reasoning, ending)) = read(&bytes[..cut]) {
                good += 1;
                assert_eq!((&text, &reasoning, &ending.tool_calls), (&whole.0, &whole.1, &whole.2.tool_calls), "{name} at {cut}");
            }
        }
        assert!(good > 0 && good < bytes.len() / 2, "{name}: {good} of {}", bytes.len());
    }
}

proptest! {
    #[test]
    fn any_events_are_survived(events in prop::collection::vec("\\PC{0,60}", 0..10), whole in "\\PC{0,80}") {
        let (mut reader, mut pieces) = (reader(), Vec::new());
        for data in events {
            let _ = reader.event(&crate::sse::SseEvent { name: String::new(), data }, &mut pieces);
        }
        let _ = reader.whole(whole.as_bytes(), &mut pieces);
        let _ = reader.end();
    }
}
