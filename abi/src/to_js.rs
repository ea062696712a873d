//! JSON documents become values of an isolate. A walker: no text is parsed inside the engine.
//!
//! Large documents are converted piece by piece: a member with many nodes below it becomes a property that converts itself
//! when it is first read, and is plain data from then on.

use std::rc::Rc;

use covel_graph::Json;
use rquickjs::{Array, Ctx, IntoAtom, Object, String as JsString, Value as JsValue, object::Property};

use crate::{
    document::{Document, Flat},
    isolate::State,
    limits::{LAZY_DOCUMENT_NODES, LAZY_MEMBER_NODES, MAX_JSON_DEPTH},
};

/// Converts a whole document.
pub(crate) fn to_js<'js>(ctx: &Ctx<'js>, json: &Json) -> rquickjs::Result<JsValue<'js>> {
    let document = Document::of(json);
    Writer { ctx, document: &document, lazy: None }.value(0, 0).map(|(value, _)| value)
}

/// Converts a document for a call, leaving large parts for when they are read.
pub(crate) fn to_js_lazy<'js>(ctx: &Ctx<'js>, state: &State, call: u32, json: &Json) -> rquickjs::Result<JsValue<'js>> {
    let document = Document::of(json);
    if document.len() < LAZY_DOCUMENT_NODES {
        return Writer { ctx, document: &document, lazy: None }.value(0, 0).map(|(value, _)| value);
    }
    let document = Rc::new(document);
    let kept = match state.calls.borrow_mut().get_mut(&call) {
        Some(running) => {
            running.documents.push(Rc::clone(&document));
            u32::try_from(running.documents.len() - 1).unwrap_or(u32::MAX)
        }
        None => {
            return Writer { ctx, document: &document, lazy: None }.value(0, 0).map(|(value, _)| value);
        }
    };
    node_to_js(ctx, state, call, &document, kept, 0)
}

/// Converts one node of a document a call keeps.
pub(crate) fn node_to_js<'js>(
    ctx: &Ctx<'js>,
    state: &State,
    call: u32,
    document: &Document,
    kept: u32,
    at: usize,
) -> rquickjs::Result<JsValue<'js>> {
    let lazy = match state.lazy_member.borrow().clone() {
        Some(define) => Some(Lazy { define: define.restore(ctx)?, call, kept }),
        None => None,
    };
    Writer { ctx, document, lazy }.value(at, 0).map(|(value, _)| value)
}

/// Sets an ordinary own property, whatever its name (`__proto__` included).
fn define<'js>(object: &Object<'js>, key: &str, value: JsValue<'js>) -> rquickjs::Result<()> {
    if key == "__proto__" {
        return object.prop(key, Property::from(value).writable().enumerable().configurable());
    }
    object.set(key.into_atom(object.ctx())?, value)
}

struct Lazy<'js> {
    define: rquickjs::Function<'js>,
    call: u32,
    kept: u32,
}

struct Writer<'a, 'js> {
    ctx: &'a Ctx<'js>,
    document: &'a Document,
    lazy: Option<Lazy<'js>>,
}

impl<'js> Writer<'_, 'js> {
    /// The value at a node and the index after it.
    fn value(&self, at: usize, depth: usize) -> rquickjs::Result<(JsValue<'js>, usize)> {
        if depth > MAX_JSON_DEPTH {
            return Err(rquickjs::Exception::throw_range(self.ctx, "the document is nested too deeply"));
        }
        let next = at + 1;
        Ok(match self.document.node(at) {
            Flat::Null => (JsValue::new_null(self.ctx.clone()), next),
            Flat::Bool(b) => (JsValue::new_bool(self.ctx.clone(), b), next),
            #[allow(clippy::cast_precision_loss, reason = "JavaScript numbers are doubles")]
            Flat::Integer(n) => match i32::try_from(n) {
                Ok(n) => (JsValue::new_int(self.ctx.clone(), n), next),
                Err(_) => (JsValue::new_float(self.ctx.clone(), n as f64), next),
            },
            Flat::Float(n) => (JsValue::new_number(self.ctx.clone(), n), next),
            Flat::Text { start, len } => {
                (JsString::from_str(self.ctx.clone(), self.document.text(start, len))?.into_value(), next)
            }
            Flat::Array { len, .. } => {
                let array = Array::new(self.ctx.clone())?;
                let mut at = next;
                for index in 0..len {
                    match self.defer(at) {
                        Some(lazy) => {
                            self.defer_member(lazy, array.as_object(), index, at)?;
                            at += self.document.span(at);
                        }
                        None => {
                            let (item, after) = self.value(at, depth + 1)?;
                            array.set(index as usize, item)?;
                            at = after;
                        }
                    }
                }
                (array.into_value(), at)
            }
            Flat::Object { len, .. } => {
                let object = Object::new(self.ctx.clone())?;
                let mut at = next;
                for _ in 0..len {
                    let key = match self.document.node(at) {
                        Flat::Text { start, len } => self.document.text(start, len),
                        _ => "",
                    };
                    at += 1;
                    match self.defer(at) {
                        Some(lazy) => {
                            self.defer_member(lazy, &object, key, at)?;
                            at += self.document.span(at);
                        }
                        None => {
                            let (member, after) = self.value(at, depth + 1)?;
                            define(&object, key, member)?;
                            at = after;
                        }
                    }
                }
                (object.into_value(), at)
            }
        })
    }

    fn defer(&self, at: usize) -> Option<&Lazy<'js>> {
        self.lazy.as_ref().filter(|_| self.document.span(at) >= LAZY_MEMBER_NODES)
    }

    fn defer_member(
        &self,
        lazy: &Lazy<'js>,
        target: &Object<'js>,
        key: impl rquickjs::IntoJs<'js>,
        at: usize,
    ) -> rquickjs::Result<()> {
        lazy.define.call::<_, ()>((target.clone(), key, lazy.call, lazy.kept, at))
    }
}
