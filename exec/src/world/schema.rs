//! The character schema: which types there are, which attributes, and whether a value fits one.

use covel_graph::Json;
use serde_json::{Map, Value, json};

use crate::{
    limits::{MAX_ATTRIBUTE_DEPTH, MAX_ATTRIBUTES, MAX_CHARACTER_TYPES},
    results::kind_of,
    write::{Fault, filled, within_limit},
};

/// The type every schema has without naming it. A session may have several. SEA-5
pub const PLAYER: &str = "player";
/// Types of a session whose schema names none.
const DEFAULT_TYPES: [&str; 2] = ["npc", "companion"];
const CATEGORIES: [&str; 5] = ["stats", "bio", "abilities", "equipment", "social"];
const KINDS: [&str; 7] = ["string", "number", "boolean", "enum", "array", "object", "map"];

/// `{types, attributes}`, read and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct CharacterSchema {
    /// Types besides `player`.
    pub types: Vec<String>,
    attributes: Vec<Attribute>,
    raw: Vec<Value>,
}

#[derive(Clone, Debug, PartialEq)]
struct Attribute {
    id: String,
    shape: Shape,
    default: Option<Value>,
}

#[derive(Clone, Debug, PartialEq)]
enum Shape {
    Text,
    Number { min: Option<f64>, max: Option<f64> },
    Flag,
    OneOf(Vec<Value>),
    List(Option<Box<Shape>>),
    Object(Vec<(String, Shape)>),
    Map(Box<Shape>),
}

impl Default for CharacterSchema {
    fn default() -> Self {
        Self { types: DEFAULT_TYPES.map(str::to_owned).to_vec(), attributes: Vec::new(), raw: Vec::new() }
    }
}

impl CharacterSchema {
    /// Reads a schema as authors write it.
    ///
    /// # Errors
    /// A [`Fault`] naming the attribute and what is wrong with it.
    pub fn read(payload: &Map<String, Value>) -> Result<Self, Fault> {
        let mut types: Vec<String> = Vec::new();
        match payload.get("types") {
            None => types = DEFAULT_TYPES.map(str::to_owned).to_vec(),
            Some(Value::Array(items)) => {
                for item in items {
                    let name = item.as_str().map(str::trim).filter(|name| !name.is_empty());
                    let name = name.ok_or("`types` is a list of non-empty strings")?;
                    if name != PLAYER && !types.iter().any(|known| known == name) {
                        types.push(name.to_owned());
                    }
                }
            }
            Some(other) => return Err(Fault::Rule(format!("`types` is a list, not {}", kind_of(other)))),
        }
        if types.len() > MAX_CHARACTER_TYPES {
            return Err(Fault::Rule(format!("has {} types; at most {MAX_CHARACTER_TYPES}", types.len())));
        }
        let raw = match payload.get("attributes") {
            None => Vec::new(),
            Some(Value::Array(items)) => items.clone(),
            Some(other) => return Err(Fault::Rule(format!("`attributes` is a list, not {}", kind_of(other)))),
        };
        if raw.len() > MAX_ATTRIBUTES {
            return Err(Fault::Rule(format!("has {} attributes; at most {MAX_ATTRIBUTES}", raw.len())));
        }
        let mut attributes: Vec<Attribute> = Vec::with_capacity(raw.len());
        for (at, item) in raw.iter().enumerate() {
            let object = item.as_object().ok_or_else(|| Fault::NotAnObject(format!(".attributes[{at}]")))?;
            let named = |fault: Fault| Fault::Rule(fault.at(&format!("attributes[{at}]")));
            let attribute = attribute(object).map_err(named)?;
            if attributes.iter().any(|known| known.id == attribute.id) {
                return Err(Fault::Rule(format!("attribute {:?} is declared twice", attribute.id)));
            }
            attributes.push(attribute);
        }
        let schema = Self { types, attributes, raw };
        within_limit("the character schema", schema.to_json())?;
        Ok(schema)
    }

    /// `{types, attributes}`.
    pub fn to_json(&self) -> Json {
        Json::from_value(json!({"types": self.types, "attributes": self.raw}))
    }

    /// Is this a type of this schema?
    pub fn has_type(&self, name: &str) -> bool {
        name == PLAYER || self.types.iter().any(|known| known == name)
    }

    /// Checks the declared ones of these fields; undeclared ones are kept as they are.
    ///
    /// # Errors
    /// A sentence naming the field.
    pub fn check(&self, fields: &Map<String, Value>) -> Result<(), String> {
        for attribute in &self.attributes {
            if let Some(value) = fields.get(&attribute.id) {
                fits(&attribute.shape, value).map_err(|message| format!("field {:?} {message}", attribute.id))?;
            }
        }
        Ok(())
    }

    /// Fills in the defaults of fields that are not there.
    pub fn fill(&self, fields: &mut Map<String, Value>) {
        for attribute in &self.attributes {
            if let (Some(default), false) = (&attribute.default, fields.contains_key(&attribute.id)) {
                fields.insert(attribute.id.clone(), default.clone());
            }
        }
    }
}

fn attribute(object: &Map<String, Value>) -> Result<Attribute, Fault> {
    let id = filled(object, "id")?.to_owned();
    if !object.contains_key("name") {
        return Err(Fault::Rule(format!("attribute {id:?} has no `name`")));
    }
    let category = filled(object, "category")?;
    if !CATEGORIES.contains(&category) {
        return Err(Fault::Rule(format!("`category` is one of {}, not {category:?}", CATEGORIES.join(" "))));
    }
    let shape = shape(object, 0)?;
    let default = object.get("defaultValue").filter(|value| !value.is_null()).cloned();
    if let Some(default) = &default {
        fits(&shape, default).map_err(|message| Fault::Rule(format!("the default of {id:?} {message}")))?;
    }
    Ok(Attribute { id, shape, default })
}

fn shape(object: &Map<String, Value>, depth: usize) -> Result<Shape, Fault> {
    if depth > MAX_ATTRIBUTE_DEPTH {
        return Err(Fault::Rule(format!("attributes nest at most {MAX_ATTRIBUTE_DEPTH} deep")));
    }
    let number = |name: &str| match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_f64().map(Some).ok_or_else(|| Fault::Rule(format!("`{name}` is a number"))),
    };
    let word = |name: &str, allowed: &[&str], fallback: Option<Shape>| match object.get(name) {
        None | Some(Value::Null) => Ok(fallback.clone()),
        Some(value) => match value.as_str().filter(|word| allowed.contains(word)) {
            Some("string") => Ok(Some(Shape::Text)),
            Some("number") => Ok(Some(Shape::Number { min: None, max: None })),
            Some(_) => Ok(Some(Shape::Flag)),
            None => Err(Fault::Rule(format!("`{name}` is one of {}", allowed.join(" ")))),
        },
    };
    Ok(match filled(object, "type")? {
        "string" => Shape::Text,
        "boolean" => Shape::Flag,
        "number" => Shape::Number { min: number("min")?, max: number("max")? },
        "enum" => {
            let options = object.get("options").and_then(Value::as_array).filter(|options| !options.is_empty());
            let options = options.ok_or("an enum has a non-empty list `options`")?;
            Shape::OneOf(
                options.iter().map(|option| option.get("value").cloned().unwrap_or_else(|| option.clone())).collect(),
            )
        }
        "array" => Shape::List(word("itemType", &["string", "number"], None)?.map(Box::new)),
        "map" => Shape::Map(Box::new(
            word("valueType", &["string", "number", "boolean"], Some(Shape::Text))?.unwrap_or(Shape::Text),
        )),
        "object" => Shape::Object(members(object.get("subSchema"), depth)?),
        other => return Err(Fault::Rule(format!("`type` is one of {}, not {other:?}", KINDS.join(" ")))),
    })
}

/// Members of an object: a list of attributes, or a map of name to attribute.
fn members(sub: Option<&Value>, depth: usize) -> Result<Vec<(String, Shape)>, Fault> {
    match sub {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => items
            .iter()
            .enumerate()
            .map(|(at, item)| {
                let item = item.as_object().ok_or_else(|| Fault::NotAnObject(format!(".subSchema[{at}]")))?;
                Ok((filled(item, "id")?.to_owned(), shape(item, depth + 1)?))
            })
            .collect(),
        Some(Value::Object(map)) => map
            .iter()
            .map(|(name, item)| {
                let item = item.as_object().ok_or_else(|| Fault::NotAnObject(format!(".subSchema.{name}")))?;
                Ok((name.clone(), shape(item, depth + 1)?))
            })
            .collect(),
        Some(other) => Err(Fault::Rule(format!("`subSchema` is a list or a map, not {}", kind_of(other)))),
    }
}

fn fits(shape: &Shape, value: &Value) -> Result<(), String> {
    match (shape, value) {
        (Shape::Text, Value::String(_)) | (Shape::Flag, Value::Bool(_)) => Ok(()),
        (Shape::Number { min, max }, Value::Number(number)) => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            match (min, max) {
                (Some(min), _) if number < *min => Err(format!("is {number}; at least {min}")),
                (_, Some(max)) if number > *max => Err(format!("is {number}; at most {max}")),
                _ => Ok(()),
            }
        }
        (Shape::OneOf(options), value) => {
            let shown = || options.iter().map(Value::to_string).collect::<Vec<_>>().join(", ");
            if options.contains(value) { Ok(()) } else { Err(format!("is {value}; one of {}", shown())) }
        }
        (Shape::List(item), Value::Array(items)) => match item {
            Some(shape) => items
                .iter()
                .enumerate()
                .try_for_each(|(at, item)| fits(shape, item).map_err(|message| format!("[{at}] {message}"))),
            None => Ok(()),
        },
        (Shape::Object(members), Value::Object(map)) => {
            members.iter().try_for_each(|(name, shape)| match map.get(name) {
                Some(value) => fits(shape, value).map_err(|message| format!(".{name} {message}")),
                None => Ok(()),
            })
        }
        (Shape::Map(shape), Value::Object(map)) => {
            map.iter().try_for_each(|(name, value)| fits(shape, value).map_err(|message| format!(".{name} {message}")))
        }
        (_, value) => Err(format!("is {}, not {}", kind_of(value), wanted(shape))),
    }
}

fn wanted(shape: &Shape) -> &'static str {
    match shape {
        Shape::Text => "a string",
        Shape::Number { .. } => "a number",
        Shape::Flag => "a boolean",
        Shape::OneOf(_) => "one of its options",
        Shape::List(_) => "a list",
        Shape::Object(_) | Shape::Map(_) => "an object",
    }
}
