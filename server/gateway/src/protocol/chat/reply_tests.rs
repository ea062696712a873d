//! How replies are read, without a socket.

use covel_model::{FinishReason, ModelErrorKind, Usage};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::limits::MAX_OUTPUT_BYTES;
use crate::protocol::{Ending, Piece, Progress, ToolNames};
use crate::sse::SseParser;

fn reader() -> ChatReader {
    ChatReader::new(&WireRequest {
        path: String::new(),
        body: b"request".as_slice().into(),
        tool_names: ToolNames::default(),
    })
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
    let turns = [
        fragment(Some(3), "a", "f", "{"),
        fragment(Some(1), "b", "g", "{"),
        fragment(Some(3), "", "", "}"),
        fragment(Some(1), "", "", "}"),
    ];
    assert_eq!(calls(&turns), two);
    // No arguments, and arguments as an object.
    assert_eq!(calls(&[fragment(Some(0), "a", "roll_dice", "")]), long);
    let object = json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": {"x": 1}}}]});
    assert_eq!(calls(&[object]), one);
}

#[test]
fn missing_and_double_ids_are_replaced_and_stay_the_same() {
    let deltas =
        [fragment(Some(0), "", "f", "{}"), fragment(Some(1), "x", "f", "{}"), fragment(Some(2), "x", "f", "{}")];
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
        json!({"content": 3}),
        json!({"content": {"a": 1}}),
        json!("text"),
        json!([1]),
        json!({"tool_calls": "x"}),
        json!({"tool_calls": [7]}),
        json!({"tool_calls": [{"index": 0, "function": {"arguments": 5}}]}),
    ] {
        let fault = read(&stream(std::slice::from_ref(&delta), "stop")).expect_err("broken");
        assert_eq!(fault.kind, ModelErrorKind::Server, "{delta}");
    }
    for data in [
        "3",
        "[]",
        "\"x\"",
        "{\"choices\": 4}",
        "{\"choices\": [4]}",
        "{\"choices\":[{\"finish_reason\":4}]}",
        "nonsense",
    ] {
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
                assert_eq!(
                    (&text, &reasoning, &ending.tool_calls),
                    (&whole.0, &whole.1, &whole.2.tool_calls),
                    "{name} at {cut}"
                );
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
