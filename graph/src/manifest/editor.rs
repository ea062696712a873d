//! JSON Schemas of both manifest kinds, for editors, made from the tables the compiler itself checks with.

use serde_json::{Map, Value, json};

use super::{
    grammar::Grammar,
    shape::{Fields, ListShape, MapShape, Shape},
    tables,
};

/// A manifest kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManifestKind {
    /// The root `PLUGIN.md`.
    Plugin,
    /// A `RUNTIME.md`.
    Runtime,
}

/// The JSON Schema (draft-07, which editors know best) of a manifest's front matter.
///
/// It covers shape only: whether named files, runtimes and contracts exist is for the compiler.
pub fn manifest_schema(kind: ManifestKind) -> Value {
    let (title, fields) = match kind {
        ManifestKind::Plugin => ("PLUGIN.md front matter", &tables::PLUGIN),
        ManifestKind::Runtime => ("RUNTIME.md front matter", &tables::RUNTIME),
    };
    let mut schema = object(fields);
    schema.insert("$schema".into(), json!("http://json-schema.org/draft-07/schema#"));
    schema.insert("title".into(), json!(title));
    Value::Object(schema)
}

fn object(fields: &'static Fields) -> Map<String, Value> {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in fields.fields {
        let mut schema = shape(&field.shape);
        schema.insert("description".into(), json!(field.doc));
        properties.insert(field.name.into(), Value::Object(schema));
        if field.required {
            required.push(field.name);
        }
    }
    let mut schema = Map::from_iter([
        ("type".to_owned(), json!("object")),
        ("properties".to_owned(), Value::Object(properties)),
        ("additionalProperties".to_owned(), json!(fields.open)),
    ]);
    if !required.is_empty() {
        schema.insert("required".into(), json!(required));
    }
    schema
}

fn shape(shape: &'static Shape) -> Map<String, Value> {
    let value = match shape {
        Shape::Any => json!({}),
        Shape::Bool => json!({"type": "boolean"}),
        Shape::Text(grammar) => Value::Object(text(grammar)),
        Shape::Word(words) => json!({"type": "string", "enum": words}),
        Shape::Int(min, max) => json!({"type": "integer", "minimum": min, "maximum": max}),
        Shape::Number => json!({"type": "number"}),
        Shape::Label(max) => {
            let one = json!({"type": "string", "pattern": "\\S", "maxLength": max});
            json!({"anyOf": [one, {"type": "object", "minProperties": 1, "additionalProperties": one}]})
        }
        Shape::List(list) => Value::Object(items(list)),
        Shape::Map(map) => Value::Object(entries(map)),
        Shape::Object(fields) => Value::Object(object(fields)),
        Shape::Either(shapes) => {
            let any: Vec<Value> = shapes.iter().map(|one| Value::Object(self::shape(one))).collect();
            json!({"anyOf": any})
        }
    };
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn text(grammar: &'static Grammar) -> Map<String, Value> {
    let mut schema =
        Map::from_iter([("type".to_owned(), json!("string")), ("maxLength".to_owned(), json!(grammar.max))]);
    if !grammar.pattern.is_empty() {
        schema.insert("pattern".into(), json!(grammar.pattern));
    }
    schema
}

fn items(list: &'static ListShape) -> Map<String, Value> {
    let mut schema = Map::from_iter([
        ("type".to_owned(), json!("array")),
        ("items".to_owned(), Value::Object(shape(&list.of))),
        ("maxItems".to_owned(), json!(list.max)),
    ]);
    if list.min > 0 {
        schema.insert("minItems".into(), json!(list.min));
    }
    if list.unique {
        schema.insert("uniqueItems".into(), json!(true));
    }
    schema
}

fn entries(map: &'static MapShape) -> Map<String, Value> {
    let mut schema = Map::from_iter([
        ("type".to_owned(), json!("object")),
        ("additionalProperties".to_owned(), Value::Object(shape(&map.of))),
        ("maxProperties".to_owned(), json!(map.max)),
        ("propertyNames".to_owned(), Value::Object(text(map.key))),
    ]);
    if map.min > 0 {
        schema.insert("minProperties".into(), json!(map.min));
    }
    schema
}
