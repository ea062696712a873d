//! Limits at their edges, refusals, and results that must not depend on the machine.
#![allow(clippy::unwrap_used)]

use covel_intl::{
    Formatter, Formatters, IntlError, joined,
    limits::{
        MAX_FORMATTERS, MAX_LIST_MEMBERS, MAX_LOCALES, MAX_NUMBER_DIGITS, MAX_OPTIONS_BYTES, MAX_TAG_BYTES,
        MAX_WORD_TEXT_BYTES,
    },
    locale, segment,
    zone::{MAX_TIME_MS, Zone},
};

fn number(spec: &str, value: &str) -> Result<String, IntlError> {
    Ok(joined(&Formatter::new('n', spec)?.number(value)?))
}

fn date(spec: &str, ms: f64) -> Result<String, IntlError> {
    Ok(joined(&Formatter::new('d', spec)?.instant(ms)?))
}

#[test]
fn numbers_of_the_largest_size_are_formatted_and_larger_ones_refused() {
    let plain = r#"{"locale":"en","useGrouping":"false"}"#;
    let most = "9".repeat(MAX_NUMBER_DIGITS);
    assert_eq!(number(plain, &most).unwrap(), most);
    assert_eq!(number(plain, &format!("{most}9")).unwrap_err().code(), "intl-too-large");
    assert_eq!(number(plain, "1e1001").unwrap_err().code(), "intl-too-large");
    assert_eq!(number(plain, "1e99999999999").unwrap_err().code(), "intl-value-invalid");
    assert_eq!(number(plain, "1e-1000").unwrap(), "0");
    for text in ["", "x", "1.2.3", "0x10", "1e", "--1", "\u{0}", "1_000"] {
        assert_eq!(number(plain, text).unwrap_err().code(), "intl-value-invalid", "{text:?}");
    }
    let percent = r#"{"locale":"en","style":"percent"}"#;
    assert!(number(percent, &most).unwrap().ends_with('%'));
    let compact = r#"{"locale":"en","notation":"compact"}"#;
    assert!(number(compact, &most).is_ok() && number(compact, "1e-900").is_ok());
}

#[test]
fn dates_at_the_ends_of_time_are_formatted_and_later_ones_refused() {
    for zone in ["UTC", "Europe/Berlin", "Pacific/Kiritimati", "+23:59", "-23:59"] {
        let spec = format!(r#"{{"locale":"en","dateStyle":"full","timeStyle":"long","timeZone":"{zone}"}}"#);
        for ms in [MAX_TIME_MS, -MAX_TIME_MS, 0.0, -0.5] {
            assert!(!date(&spec, ms).unwrap().is_empty());
        }
        for ms in [MAX_TIME_MS + 1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(date(&spec, ms).unwrap_err().code(), "intl-value-invalid");
        }
    }
}

#[test]
fn tags_and_lists_of_tags_have_a_largest_size() {
    let tag = |length: usize| format!("en-x-{}", &"abcdefgh-".repeat(20)[..length - 5]);
    assert!(locale::canonical(&tag(MAX_TAG_BYTES)).is_ok());
    assert_eq!(locale::canonical(&tag(MAX_TAG_BYTES + 1)).unwrap_err().code(), "intl-locale-invalid");
    assert!(locale::canonical_list(&vec!["en".to_owned(); MAX_LOCALES]).is_ok());
    assert_eq!(locale::canonical_list(&vec!["en".to_owned(); MAX_LOCALES + 1]).unwrap_err().code(), "intl-too-large");
    for tag in ["", "en_US", "x", "en-", "日本", "en-u-", "\u{0}", "a".repeat(4000).as_str()] {
        assert_eq!(locale::canonical(tag).unwrap_err().code(), "intl-locale-invalid", "{tag:?}");
    }
}

#[test]
fn text_and_lists_have_a_largest_size() {
    assert!(segment::segment("word", &"a".repeat(MAX_WORD_TEXT_BYTES)).is_ok());
    assert_eq!(segment::segment("word", &"a".repeat(MAX_WORD_TEXT_BYTES + 1)).unwrap_err().code(), "intl-too-large");
    assert_eq!(segment::segment("line", "a").unwrap_err().code(), "intl-option-invalid");
    let lists = Formatter::new('l', r#"{"locale":"en"}"#).unwrap();
    assert!(lists.list(&vec![String::new(); MAX_LIST_MEMBERS]).is_ok());
    assert_eq!(lists.list(&vec![String::new(); MAX_LIST_MEMBERS + 1]).unwrap_err().code(), "intl-too-large");
}

#[test]
fn the_store_of_formatters_is_bounded_and_forgets_the_one_unused_for_longest() {
    let mut store = Formatters::default();
    let key =
        |digits: usize| format!(r#"n{{"locale":"en","minimumFractionDigits":{digits},"maximumFractionDigits":100}}"#);
    for digits in 0..MAX_FORMATTERS + 20 {
        store.get(&key(digits)).unwrap();
        store.get(&key(0)).unwrap();
    }
    assert_eq!(store.len(), MAX_FORMATTERS);
    let (first, again) = (store.get(&key(0)).unwrap(), store.get(&key(0)).unwrap());
    assert!(std::rc::Rc::ptr_eq(&first, &again));
    assert_eq!(store.len(), MAX_FORMATTERS);
    let long = format!(r#"n{{"locale":"{}"}}"#, "a".repeat(MAX_OPTIONS_BYTES));
    assert_eq!(store.get(&long).err().unwrap().code(), "intl-too-large");
    for key in [
        "",
        "n",
        "n{",
        "x{}",
        "ü{}",
        r#"c{"locale":"en","unknown":1}"#,
        r#"n{"locale":"en","minimumFractionDigits":1e9}"#,
    ] {
        assert!(store.get(key).is_err(), "{key}");
    }
}

#[test]
fn a_service_refuses_what_it_does_not_do() {
    let numbers = Formatter::new('n', r#"{"locale":"en"}"#).unwrap();
    assert!(numbers.compare("a", "b").is_err());
    assert!(numbers.instant(0.0).is_err());
    let currency = Formatter::new('n', r#"{"locale":"en","style":"currency"}"#).err().unwrap();
    assert_eq!(currency.code(), "intl-unsupported");
    assert!(currency.to_string().contains("style \"decimal\""), "{currency}");
}

#[test]
fn zones_are_found_in_any_case_and_never_on_the_machine() {
    assert_eq!(Zone::find("eUROPE/bERLIN").unwrap().name(), "Europe/Berlin");
    assert_eq!(Zone::find("etc/utc").unwrap().name(), "UTC");
    assert_eq!(Zone::find("-0830").unwrap().name(), "-08:30");
    // 2026-07-01 and 2026-01-01
    assert_eq!(Zone::find("Europe/Berlin").unwrap().offset_seconds(1_782_864_000_000.0), 7200);
    assert_eq!(Zone::find("Europe/Berlin").unwrap().offset_seconds(1_767_225_600_000.0), 3600);
    for name in
        ["", "../etc/passwd", "/etc/localtime", "localtime", "+24:00", "+1", "+aa:bb", "+é1", "-ab", "Mars/Base"]
    {
        assert_eq!(Zone::find(name).err().map(|error| error.code()), Some("intl-option-invalid"), "{name}");
    }
}
