//! What goes out, without a socket.

use covel_model::{Message, ModelErrorKind, ModelRequest, Role, StoryContext, ToolCall, ToolChoice, ToolSpec};
use serde_json::{Value, json};

use super::*;
use crate::config::{LlmConfig, Surroundings};
use crate::limits::MAX_REQUEST_BYTES;

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
    assistant.tool_calls =
        vec![call("c1", "roll_dice", "{\"sides\":6}"), call("c2", "roll_dice", "{broken"), call("c3", "dice.roll", "")];
    let request = ModelRequest {
        messages: vec![Message::new(Role::User, "Roll"), assistant, Message::tool_result("c1", "4")],
        tools: vec![roll(), ToolSpec { name: "dice.roll".into(), ..roll() }],
        tool_choice: ToolChoice::Named("dice.roll".into()),
        ..ModelRequest::default()
    };
    let body = body(&slot("openai", "gpt-4o", ""), &request);
    let calls = &body["messages"][1]["tool_calls"];
    assert_eq!(body["messages"][1]["content"], Value::Null);
    assert_eq!(
        calls[0],
        json!({"id": "c1", "type": "function", "function": {"name": "roll_dice", "arguments": "{\"sides\":6}"}})
    );
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
    let request =
        ModelRequest { system: "Judge.".into(), response_schema: Some(json!({"type": "array"})), ..asked("Hi") };
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
    let story =
        StoryContext { session_id: "session-1".into(), runtime_id: "narrator".into(), ..StoryContext::default() };
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
    let request = asked(&"x".repeat(MAX_REQUEST_BYTES));
    let refused = OpenAiChat.write(&slot("openai", "m", ""), &request, Mode::Stream);
    assert_eq!(refused.map_err(|fault| fault.kind).err(), Some(ModelErrorKind::BadRequest));
}
