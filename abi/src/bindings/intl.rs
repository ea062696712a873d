//! Locale-aware text, numbers and dates for the `Intl` classes. Formatters are made once a worker, whoever asks for them:
//! they are immutable and know nothing of the plugin.

use std::{cell::RefCell, cmp::Ordering, rc::Rc};

use covel_intl::{Formatter, Formatters, IntlError, PartText, case, locale, segment, zone::Zone};
use rquickjs::{Ctx, Exception, Object, Result};

use super::{fenced, function};
use crate::isolate::State;

thread_local! {
    /// Bounded by `covel_intl::limits::MAX_FORMATTERS`.
    static FORMATTERS: RefCell<Formatters> = RefCell::default();
}

fn taken<T>(ctx: &Ctx<'_>, result: std::result::Result<T, IntlError>) -> Result<T> {
    result.map_err(|error| match &error {
        IntlError::Unsupported { .. } => Exception::throw_type(ctx, &error.to_string()),
        IntlError::Internal { .. } => Exception::throw_internal(ctx, &error.to_string()),
        _ => Exception::throw_range(ctx, &error.to_string()),
    })
}

fn with<T>(
    ctx: &Ctx<'_>,
    key: &str,
    use_it: impl FnOnce(&Formatter) -> std::result::Result<T, IntlError>,
) -> Result<T> {
    let found = FORMATTERS.with_borrow_mut(|formatters| formatters.get(key));
    taken(ctx, found.and_then(|formatter| use_it(&formatter)))
}

/// Type and text of each part, one after the other.
fn flat(parts: Vec<PartText>) -> Vec<String> {
    parts.into_iter().flat_map(|(name, text)| [name.to_owned(), text]).collect()
}

pub(super) fn install<'js>(ctx: &Ctx<'js>, host: &Object<'js>, state: &Rc<State>) -> Result<()> {
    function!(ctx, host, state, "intlCanonical", |c, _s, tags: Vec<String>| {
        taken(&c, locale::canonical_list(&tags))
    });
    function!(ctx, host, state, "intlSupported", |_c, _s, tag: String| { Ok(locale::supported(&tag)) });
    // The locale, then key and value of each keyword of the chosen tag.
    function!(ctx, host, state, "intlResolve", |_c, _s, tags: Vec<String>, keys: Vec<String>| {
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let resolved = locale::resolve(&tags, &keys);
        let mut out = vec![resolved.locale];
        out.extend(resolved.keywords.into_iter().flat_map(|(key, value)| [key, value]));
        Ok(out)
    });
    function!(ctx, host, state, "intlMake", |c, _s, key: String| { with(&c, &key, |_| Ok(())) });
    function!(ctx, host, state, "intlCompare", |c, _s, key: String, left: String, right: String| {
        let order = with(&c, &key, |formatter| formatter.compare(&left, &right))?;
        Ok(match order {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        })
    });
    // `upper`, `lower` or `false`, then whether punctuation is left out.
    function!(ctx, host, state, "intlCollator", |c, _s, key: String| {
        with(&c, &key, |formatter| {
            Ok(match formatter {
                Formatter::Collator(c) => vec![c.case_first().to_owned(), c.ignores_punctuation().to_string()],
                _ => Vec::new(),
            })
        })
    });
    function!(ctx, host, state, "intlNumber", |c, _s, key: String, number: String| {
        with(&c, &key, |formatter| formatter.number(&number)).map(flat)
    });
    function!(ctx, host, state, "intlInstant", |c, _s, key: String, time_ms: f64| {
        with(&c, &key, |formatter| formatter.instant(time_ms)).map(flat)
    });
    function!(ctx, host, state, "intlList", |c, _s, key: String, members: Vec<String>| {
        with(&c, &key, |formatter| formatter.list(&members)).map(flat)
    });
    function!(ctx, host, state, "intlPlurals", |c, _s, key: String| {
        with(&c, &key, |formatter| {
            Ok(match formatter {
                Formatter::Plurals(plurals) => plurals.categories(),
                _ => Vec::new(),
            })
        })
    });
    function!(ctx, host, state, "intlZone", |c, _s, name: String| {
        taken(&c, Zone::find(&name).map(|zone| zone.name().to_owned()))
    });
    // Ends of the segments, then for words whether each is a word.
    function!(ctx, host, state, "intlSegment", |c, _s, granularity: String, text: String| {
        let found = taken(&c, segment::segment(&granularity, &text))?;
        Ok(vec![found.ends, found.word_like.into_iter().map(u32::from).collect()])
    });
    function!(ctx, host, state, "intlCase", |c, _s, upper: bool, tag: String, text: String| {
        taken(&c, if upper { case::upper(&tag, &text) } else { case::lower(&tag, &text) })
    });
    Ok(())
}
