//! The grammars of names and paths in manifests.

use crate::ids;

/// A kind of string.
pub(crate) struct Grammar {
    /// As in "`x` is not ...".
    pub(crate) name: &'static str,
    /// Diagnostic code.
    pub(crate) code: &'static str,
    pub(crate) check: fn(&str) -> bool,
    /// Most characters.
    pub(crate) max: usize,
    /// The same as an ECMA-262 pattern, for editors; empty when there is none.
    pub(crate) pattern: &'static str,
    /// What is accepted.
    pub(crate) help: &'static str,
}

macro_rules! grammar {
    ($ident:ident, $name:literal, $code:literal, $check:expr, $max:expr, $pattern:literal, $help:literal) => {
        pub(crate) static $ident: Grammar =
            Grammar { name: $name, code: $code, check: $check, max: $max, pattern: $pattern, help: $help };
    };
}

const LONG: usize = 100_000;

grammar!(TEXT, "a text", "bad-text", |_| true, LONG, "", "any text");
grammar!(NONEMPTY, "a non-empty text", "empty-text", |text| !text.trim().is_empty(), 1000, "\\S", "any non-empty text");
grammar!(
    NONEMPTY_TEXT,
    "a non-empty text",
    "empty-text",
    |text| !text.trim().is_empty(),
    LONG,
    "\\S",
    "any non-empty text"
);
grammar!(
    PACKAGE_ID,
    "a package id",
    "bad-id",
    ids::is_package_id,
    100,
    "^[a-z][a-z0-9-]*$",
    "start with a lowercase letter, then lowercase letters, digits and `-`"
);
grammar!(
    COMMAND_NAME,
    "a command name",
    "bad-id",
    ids::is_package_id,
    32,
    "^[a-z][a-z0-9-]*$",
    "start with a lowercase letter, then lowercase letters, digits and `-`, at most 32 characters"
);
grammar!(
    CONTRACT,
    "a contract id",
    "bad-contract-id",
    ids::is_contract_id,
    200,
    "^[a-z][a-z0-9.-]*@[1-9][0-9]*$",
    "write `<name>@<major>`: lowercase letters, digits, `.` and `-`, then `@` and a positive number, as in `weather.now@1`"
);
grammar!(
    TOPIC,
    "an event topic",
    "bad-topic",
    ids::is_topic,
    200,
    "^[a-z0-9-]+(\\.[a-z0-9-]+)+$",
    "write at least two segments of lowercase letters, digits and `-` with dots between, as in `weather.changed`"
);
grammar!(
    SETTING_KEY,
    "a setting key",
    "bad-key",
    |text| starts(text, char_alpha) && rest(text, |c| char_word(c) || c == '-'),
    64,
    "^[A-Za-z][A-Za-z0-9_-]*$",
    "start with a letter, then letters, digits, `_` and `-`"
);
grammar!(
    EXTENSION_ID,
    "an extension id",
    "bad-id",
    |text| starts(text, char_alnum) && rest(text, |c| char_word(c) || matches!(c, '.' | '-')),
    64,
    "^[A-Za-z0-9][A-Za-z0-9_.-]*$",
    "start with a letter or digit, then letters, digits, `_`, `.` and `-`"
);
grammar!(
    NAMESPACE,
    "a namespace",
    "bad-namespace",
    |text| starts(text, |c| c.is_ascii_lowercase())
        && rest(text, |c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-')),
    64,
    "^[a-z][a-z0-9_-]*$",
    "start with a lowercase letter, then lowercase letters, digits, `_` and `-`, at most 64"
);
grammar!(
    PROJECTION_KEY,
    "a projection namespace or key",
    "bad-namespace",
    |text| starts(text, char_alpha) && rest(text, |c| char_word(c) || c == '-'),
    64,
    "^[A-Za-z][A-Za-z0-9_-]*$",
    "start with a letter, then letters, digits, `_` and `-`, at most 64"
);
grammar!(
    DATA_NAMESPACE,
    "a data namespace",
    "reserved-namespace",
    |text| !text.is_empty() && !text.starts_with('_'),
    128,
    "^[^_]",
    "names that start with `_` are the kernel's; choose another"
);
grammar!(
    JS_PATH,
    "a module path",
    "bad-path",
    |text| ends(text, &[".js", ".mjs", ".cjs", ".ts", ".mts"])
        && text.chars().all(|c| char_alnum(c) || matches!(c, '_' | '.' | '/' | '-')),
    500,
    "^[A-Za-z0-9_./-]+\\.([jJ][sS]|[mM][jJ][sS]|[cC][jJ][sS]|[tT][sS]|[mM][tT][sS])$",
    "write a path inside the package that ends in .js, .mjs, .cjs, .ts or .mts, of letters, digits, `_`, `.`, `/` and `-`"
);
grammar!(
    JSON_PATH,
    "a JSON path",
    "bad-path",
    |text| ends(text, &[".json"]),
    500,
    "\\.[jJ][sS][oO][nN]$",
    "write a path inside the package that ends in .json"
);
grammar!(
    FILE_PATH,
    "a path",
    "bad-path",
    |text| !text.trim().is_empty(),
    500,
    "\\S",
    "write a path inside the package"
);
grammar!(
    SCHEMA_REFERENCE,
    "a schema reference",
    "bad-path",
    |text| match text.strip_prefix("contract:") {
        Some(contract) => ids::is_contract_id(contract),
        None => ends(text, &[".json"]),
    },
    500,
    "^contract:|\\.[jJ][sS][oO][nN]$",
    "write a path that ends in .json, or `contract:<id>`"
);
grammar!(
    HTTPS,
    "an https link",
    "bad-link",
    is_https_link,
    2048,
    "^https://[^\\s@]+$",
    "write `https://` and an address without blanks, user name or password"
);
grammar!(
    ORIGIN,
    "an https origin",
    "bad-origin",
    is_https_origin,
    300,
    "^https://[^/?#@\\s]+$",
    "write `https://<host>` or `https://<host>:<port>`, without path, query or credentials"
);
grammar!(
    POINTER,
    "a JSON pointer",
    "bad-pointer",
    is_pointer,
    1000,
    "^(/([^~]|~[01])*)?$",
    "write `/` before every step, `~1` for `/` and `~0` for `~`; an empty text is the whole value"
);
grammar!(
    TAG,
    "a catalogue tag",
    "bad-tag",
    |text| !text.trim().is_empty() && !text.starts_with("role:"),
    64,
    "^(?!role:)",
    "any short text that does not start with `role:`"
);
grammar!(
    EFFECT,
    "an effect",
    "bad-effect",
    is_effect,
    300,
    "^((state|narrative|characters|assets|media|lorebook|ui|interaction|unknown):\\*|plugin-data:self:[A-Za-z0-9_.*-]+|event:[a-z0-9-]+(\\.[a-z0-9-]+)+|http:https://[^/?#@\\s]+)$",
    "write `state:*`, `narrative:*`, `characters:*`, `assets:*`, `media:*`, `lorebook:*`, `ui:*`, `interaction:*`, \
     `unknown:*`, `plugin-data:self:<namespace>`, `event:<topic>` or `http:https://<host>`"
);
grammar!(LICENSE, "a licence name", "empty-text", |text| !text.trim().is_empty(), 64, "\\S", "1 to 64 characters");
grammar!(AUTHOR_NAME, "an author name", "empty-text", |text| !text.trim().is_empty(), 80, "\\S", "1 to 80 characters");
grammar!(
    HOST_RANGE,
    "a host range",
    "empty-text",
    |text| !text.trim().is_empty(),
    200,
    "\\S",
    "as in `>=0.1.0 <0.2.0`"
);
grammar!(
    RUNTIME_ID,
    "a runtime id",
    "bad-id",
    |text| text.is_empty() || text.split('/').all(ids::is_package_id) && text.split('/').count() <= 2,
    200,
    "^([a-z][a-z0-9-]*(/[a-z][a-z0-9-]*)?)?$",
    "write `<plugin>` or `<plugin>/<runtime>`"
);
grammar!(
    TOOL_NAME,
    "a tool name",
    "bad-tool-name",
    is_tool_name,
    64,
    "^[A-Za-z0-9_-]+$",
    "write letters, digits, `_` and `-`, at most 64: model providers accept no other names"
);
grammar!(ANY_KEY, "a key", "bad-key", |text| !text.is_empty(), 200, "", "any non-empty key");

fn char_alpha(c: char) -> bool {
    c.is_ascii_alphabetic()
}

fn char_alnum(c: char) -> bool {
    c.is_ascii_alphanumeric()
}

fn char_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn starts(text: &str, accept: fn(char) -> bool) -> bool {
    text.starts_with(accept)
}

fn rest(text: &str, accept: fn(char) -> bool) -> bool {
    text.chars().skip(1).all(accept)
}

fn ends(text: &str, endings: &[&str]) -> bool {
    let lower = text.to_ascii_lowercase();
    endings.iter().any(|ending| lower.ends_with(ending))
}

/// Is this a tool name that every model provider takes?
pub(crate) fn is_tool_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| char_word(c) || c == '-')
}

fn is_https_link(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("https://") else {
        return false;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or("");
    !authority.is_empty() && !authority.contains('@') && !text.contains(char::is_whitespace)
}

fn is_https_origin(text: &str) -> bool {
    let Some(host) = text.strip_prefix("https://") else {
        return false;
    };
    let (name, port) = host.split_once(':').unwrap_or((host, "443"));
    let label =
        |label: &str| !label.is_empty() && label.chars().all(|c| char_alnum(c) || c == '-') && !label.starts_with('-');
    name.split('.').all(label) && port.parse::<u16>().is_ok_and(|port| port > 0)
}

/// Is this an RFC 6901 pointer?
pub(crate) fn is_pointer(text: &str) -> bool {
    let steps_start = text.is_empty() || text.starts_with('/');
    let bytes = text.as_bytes();
    let escapes =
        bytes.iter().enumerate().all(|(at, byte)| *byte != b'~' || matches!(bytes.get(at + 1), Some(b'0' | b'1')));
    steps_start && escapes
}

/// Is this a Unicode locale id, loosely (`_` for `-` accepted)?
pub(crate) fn is_locale(text: &str) -> bool {
    let mut parts = text.split(['-', '_']);
    let language = parts.next().unwrap_or("");
    (2..=8).contains(&language.len())
        && language.chars().all(char_alpha)
        && parts.all(|part| (1..=8).contains(&part.len()) && part.chars().all(char_alnum))
}

fn is_effect(text: &str) -> bool {
    const WHOLE: &[&str] = &[
        "state:*",
        "narrative:*",
        "characters:*",
        "assets:*",
        "media:*",
        "lorebook:*",
        "ui:*",
        "interaction:*",
        "unknown:*",
    ];
    if WHOLE.contains(&text) {
        return true;
    }
    if let Some(namespace) = text.strip_prefix("plugin-data:self:") {
        return !namespace.is_empty() && namespace.chars().all(|c| char_word(c) || matches!(c, '-' | '.' | '*'));
    }
    if let Some(topic) = text.strip_prefix("event:") {
        return ids::is_topic(topic);
    }
    text.strip_prefix("http:").is_some_and(is_https_origin)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn names_and_paths() {
        for (grammar, good, bad) in [
            (&CONTRACT, &["a@1", "world.time-context@12"][..], &["a", "a@0", "a@01", "A@1", "a/b@1", "@1", "a@1x"][..]),
            (&TOPIC, &["a.b", "scene-1.changed.now"], &["a", "a.", ".a", "A.b", "a b.c"]),
            (&JS_PATH, &["./a.js", "server/x.MJS", "h.ts"], &["a", "a.json", "a b.js"]),
            (
                &ORIGIN,
                &["https://a.example", "https://a.example:8443"],
                &["http://a", "https://a/b", "https://u@a", "https://"],
            ),
            (&HTTPS, &["https://a.example/x?y"], &["https://u:p@a.example", "http://a", "https://a b"]),
            (&POINTER, &["", "/a/0", "/a~1b"], &["a", "/a~2", "/a~"]),
            (
                &EFFECT,
                &["state:*", "plugin-data:self:_x", "event:a.b", "http:https://a.example"],
                &["state:x", "event:a", "plugin-data:other:x"],
            ),
            (&RUNTIME_ID, &["", "a", "a/b"], &["a/b/c", "a/", "A"]),
            (&DATA_NAMESPACE, &["notes", "a.b"], &["_jobs", ""]),
        ] {
            for text in good {
                assert!((grammar.check)(text), "{text:?} should be {}", grammar.name);
            }
            for text in bad {
                assert!(!(grammar.check)(text), "{text:?} should not be {}", grammar.name);
            }
        }
        assert!(is_locale("zh-Hans") && is_locale("pt_BR") && is_locale("en"));
        assert!(!is_locale("e") && !is_locale("") && !is_locale("en--US") && !is_locale("../x"));
    }
}
