//! A JSON document of which an isolate may need a part: parsed once into flat nodes, converted piece by piece.

use covel_graph::Json;
use serde_json::Value;
use simd_json::{Node, StaticNode};

/// One value. A composite is followed by its members, each object member by its key first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Flat {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    /// A piece of [`Document::text`].
    Text {
        start: u32,
        len: u32,
    },
    /// `len` elements, `nodes` nodes below this one.
    Array {
        len: u32,
        nodes: u32,
    },
    /// `len` members, `nodes` nodes below this one.
    Object {
        len: u32,
        nodes: u32,
    },
}

/// A flat document.
#[derive(Debug, Default)]
pub(crate) struct Document {
    text: Vec<u8>,
    nodes: Vec<Flat>,
}

impl Document {
    /// Flattens a document. Text goes through a tape, several times cheaper than a tree that is used once.
    pub(crate) fn of(json: &Json) -> Self {
        match json.parsed() {
            Some(value) => Self::of_tree(value),
            // What the strict parser refuses the lenient one may know (numbers beyond 64 bits).
            None => Self::of_text(json.text()).unwrap_or_else(|| Self::of_tree(json.value())),
        }
    }

    fn of_text(text: &str) -> Option<Self> {
        u32::try_from(text.len()).ok()?;
        let mut bytes = text.as_bytes().to_vec();
        let base = bytes.as_ptr() as usize;
        let end = base + bytes.len();
        let tape = simd_json::to_tape(&mut bytes).ok()?;
        let mut nodes = Vec::with_capacity(tape.0.len());
        for node in &tape.0 {
            nodes.push(match *node {
                Node::Static(StaticNode::Null) => Flat::Null,
                Node::Static(StaticNode::Bool(b)) => Flat::Bool(b),
                Node::Static(StaticNode::I64(n)) => Flat::Integer(n),
                #[allow(clippy::cast_precision_loss, reason = "JavaScript numbers are doubles")]
                Node::Static(StaticNode::U64(n)) => i64::try_from(n).map_or(Flat::Float(n as f64), Flat::Integer),
                Node::Static(StaticNode::F64(n)) => Flat::Float(n),
                Node::String(piece) => {
                    // The parser unescapes strings where they stand, so each is a piece of the buffer.
                    let at = piece.as_ptr() as usize;
                    if at < base || at + piece.len() > end {
                        return None;
                    }
                    Flat::Text { start: u32::try_from(at - base).ok()?, len: u32::try_from(piece.len()).ok()? }
                }
                Node::Array { len, count } => {
                    Flat::Array { len: u32::try_from(len).ok()?, nodes: u32::try_from(count).ok()? }
                }
                Node::Object { len, count } => {
                    Flat::Object { len: u32::try_from(len).ok()?, nodes: u32::try_from(count).ok()? }
                }
            });
        }
        drop(tape);
        Some(Self { text: bytes, nodes })
    }

    fn of_tree(value: &Value) -> Self {
        let mut document = Self::default();
        document.push(value);
        document
    }

    fn push_text(&mut self, text: &str) {
        let start = self.text.len();
        self.text.extend_from_slice(text.as_bytes());
        self.nodes.push(Flat::Text { start: clamp(start), len: clamp(text.len()) });
    }

    fn push(&mut self, value: &Value) {
        match value {
            Value::Null => self.nodes.push(Flat::Null),
            Value::Bool(b) => self.nodes.push(Flat::Bool(*b)),
            Value::Number(n) => {
                self.nodes.push(n.as_i64().map_or_else(|| Flat::Float(n.as_f64().unwrap_or(0.0)), Flat::Integer))
            }
            Value::String(text) => self.push_text(text),
            Value::Array(items) => {
                let at = self.nodes.len();
                self.nodes.push(Flat::Null);
                for item in items {
                    self.push(item);
                }
                self.nodes[at] = Flat::Array { len: clamp(items.len()), nodes: clamp(self.nodes.len() - at - 1) };
            }
            Value::Object(members) => {
                let at = self.nodes.len();
                self.nodes.push(Flat::Null);
                for (key, member) in members {
                    self.push_text(key);
                    self.push(member);
                }
                self.nodes[at] = Flat::Object { len: clamp(members.len()), nodes: clamp(self.nodes.len() - at - 1) };
            }
        }
    }

    /// How many nodes the document has.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The node at an index; `null` beyond the end.
    pub(crate) fn node(&self, at: usize) -> Flat {
        self.nodes.get(at).copied().unwrap_or(Flat::Null)
    }

    /// The text of a [`Flat::Text`].
    pub(crate) fn text(&self, start: u32, len: u32) -> &str {
        let range = start as usize..start as usize + len as usize;
        self.text.get(range).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or("")
    }

    /// How many nodes a value takes, itself included.
    pub(crate) fn span(&self, at: usize) -> usize {
        match self.node(at) {
            Flat::Array { nodes, .. } | Flat::Object { nodes, .. } => nodes as usize + 1,
            _ => 1,
        }
    }
}

fn clamp(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn text_and_tree_give_the_same_nodes() {
        for text in [
            r#"{"a":[1,2.5,{"é\n\u00e9":null,"__proto__":{}}],"b":[[],[[]]],"c":-7,"d":"x","e":true,"f":18446744073709551615}"#,
            "[]",
            "null",
            r#""only text""#,
            "12345678901234567890123",
        ] {
            let (a, b) = (Document::of(&Json::trusted(text)), Document::of(&Json::parse(text).unwrap()));
            assert_eq!(a.len(), b.len(), "{text}");
            assert_eq!(a.span(0), a.len(), "{text}");
            for at in 0..a.len() {
                match (a.node(at), b.node(at)) {
                    (Flat::Text { start, len }, Flat::Text { start: other, len: other_len }) => {
                        assert_eq!(a.text(start, len), b.text(other, other_len), "{text}");
                    }
                    (left, right) => assert_eq!(left, right, "{text}"),
                }
            }
        }
    }
}
