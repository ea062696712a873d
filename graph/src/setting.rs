//! Values of package settings: does one fit its declaration? PKG-3

use serde_json::Value;

use crate::fragment::{Fragment, SettingDecl};

/// Does a value fit the setting of this key? `null` always does: it takes the value back.
///
/// # Errors
/// What would be accepted.
pub fn check_setting(fragment: &Fragment, key: &str, value: &Value) -> Result<(), String> {
    let Some(setting) = fragment.settings.iter().find(|setting| setting.key == key) else {
        let known: Vec<&str> = fragment.settings.iter().map(|setting| setting.key.as_str()).collect();
        return Err(if known.is_empty() {
            "there is no such setting; the package has none".to_owned()
        } else {
            format!("there is no such setting; there are: {}", known.join(", "))
        });
    };
    if value.is_null() { Ok(()) } else { fits(setting, value) }
}

fn fits(setting: &SettingDecl, value: &Value) -> Result<(), String> {
    match setting.kind.as_str() {
        "number" | "integer" | "slider" => {
            let number = value.as_f64().ok_or("a number is accepted")?;
            if setting.kind == "integer" && number.fract() != 0.0 {
                return Err("a whole number is accepted".into());
            }
            if setting.min.is_some_and(|min| number < min) || setting.max.is_some_and(|max| number > max) {
                let bound = |bound: Option<f64>| bound.map_or_else(|| "any".to_owned(), |bound| bound.to_string());
                return Err(format!("{} to {} is accepted", bound(setting.min), bound(setting.max)));
            }
        }
        "toggle" if !value.is_boolean() => return Err("true or false is accepted".into()),
        "text" | "textarea" | "slot" if !value.is_string() => return Err("text is accepted".into()),
        _ => {}
    }
    Ok(())
}
