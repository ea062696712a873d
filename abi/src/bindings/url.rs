//! URLs and form encoding, by the WHATWG standard.

use std::rc::Rc;

use rquickjs::{Ctx, Object, Result, Value as JsValue};
use url::{Url, form_urlencoded, quirks};

use super::{fenced, function};
use crate::isolate::State;

pub(super) fn install<'js>(ctx: &Ctx<'js>, host: &Object<'js>, state: &Rc<State>) -> Result<()> {
    function!(ctx, host, state, "urlParse", |_c, _s, input: String, base: JsValue<'js>| {
        let base = base.as_string().and_then(|text| text.to_string().ok());
        let parsed = match base {
            None => Url::parse(&input),
            Some(base) => Url::parse(&base).and_then(|base| base.join(&input)),
        };
        Ok(parsed.ok().map(|url| parts(&url)))
    });
    function!(ctx, host, state, "urlSet", |_c, _s, href: String, part: String, value: String| {
        Ok(Url::parse(&href).ok().and_then(|mut url| set(&mut url, &part, &value).then(|| parts(&url))))
    });
    function!(ctx, host, state, "formParse", |_c, _s, text: String| {
        Ok(form_urlencoded::parse(text.as_bytes())
            .map(|(name, value)| vec![name.into_owned(), value.into_owned()])
            .collect::<Vec<_>>())
    });
    function!(ctx, host, state, "formWrite", |_c, _s, pairs: Vec<Vec<String>>| {
        let mut out = form_urlencoded::Serializer::new(String::new());
        for pair in &pairs {
            if let [name, value] = pair.as_slice() {
                out.append_pair(name, value);
            }
        }
        Ok(out.finish())
    });
    Ok(())
}

/// The parts in the order the JavaScript class names them.
fn parts(url: &Url) -> Vec<String> {
    [
        quirks::href(url),
        &quirks::origin(url),
        quirks::protocol(url),
        quirks::username(url),
        quirks::password(url),
        quirks::host(url),
        quirks::hostname(url),
        quirks::port(url),
        quirks::pathname(url),
        quirks::search(url),
        quirks::hash(url),
    ]
    .map(str::to_owned)
    .to_vec()
}

/// Sets one part; a value the standard ignores leaves the URL as it is.
fn set(url: &mut Url, part: &str, value: &str) -> bool {
    match part {
        "protocol" => quirks::set_protocol(url, value).is_ok(),
        "username" => quirks::set_username(url, value).is_ok(),
        "password" => quirks::set_password(url, value).is_ok(),
        "host" => quirks::set_host(url, value).is_ok(),
        "hostname" => quirks::set_hostname(url, value).is_ok(),
        "port" => quirks::set_port(url, value).is_ok(),
        "pathname" => {
            quirks::set_pathname(url, value);
            true
        }
        "search" => {
            quirks::set_search(url, value);
            true
        }
        "hash" => {
            quirks::set_hash(url, value);
            true
        }
        _ => false,
    }
}
