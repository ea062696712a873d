//! `Intl` in an isolate: made when it is first asked for, safe against hostile options, absent parts named.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::json;
use support::eval;

#[tokio::test]
async fn intl_is_made_when_it_is_first_asked_for_and_can_be_replaced() {
    let found = eval(
        r#"
        const before = typeof Object.getOwnPropertyDescriptor(globalThis, "Intl").get;
        const same = Intl === Intl;
        const after = typeof Object.getOwnPropertyDescriptor(globalThis, "Intl").get;
        globalThis.Intl = 5;
        return [before, same, after, Intl, "a".localeCompare("b", "de")];
        "#,
    );
    assert_eq!(found.await.unwrap(), json!(["function", true, "undefined", 5, -1]));
}

#[tokio::test]
async fn what_is_absent_is_named_with_what_to_use() {
    let found = eval(
        r#"
        const says = (make) => { try { make(); return "nothing"; } catch (error) { return `${error.name}: ${error.message}`; } };
        return [
            () => new Intl.DisplayNames("en", { type: "region" }), () => new Intl.DurationFormat("en"),
            () => new Intl.NumberFormat("en", { style: "unit", unit: "meter" }),
            () => new Intl.NumberFormat("en", { notation: "scientific" }),
            () => new Intl.NumberFormat("en").formatRange(1, 2),
            () => new Intl.DateTimeFormat("en", { year: "numeric", day: "numeric" }),
            () => Intl.supportedValuesOf("calendar"),
        ].map(says);
        "#,
    );
    let found = found.await.unwrap();
    for (said, names) in found.as_array().unwrap().iter().zip([
        ["Intl.DisplayNames", "messages"],
        ["Intl.DurationFormat", "ListFormat"],
        ["style \"unit\"", "decimal"],
        ["notation \"scientific\"", "toExponential"],
        ["formatRange", "dash"],
        ["components", "month"],
        ["supportedValuesOf", "RangeError"],
    ]) {
        let said = said.as_str().unwrap();
        assert!(said.starts_with("TypeError: ") && names.iter().all(|name| said.contains(name)), "{said}");
    }
}

#[tokio::test]
async fn hostile_options_end_in_an_error_and_the_isolate_goes_on() {
    let found = eval(
        r#"
        const name = (make) => { try { make(); return "taken"; } catch (error) { return error.name; } };
        const bomb = new Proxy({}, { get() { throw new EvalError("x"); } });
        return [
            () => new Intl.NumberFormat("en", bomb),
            () => new Intl.Collator(new Proxy([], { has: () => true, get: (t, k) => (k === "length" ? 2 ** 53 : "en") })),
            () => new Intl.NumberFormat("en").format(BigInt("9".repeat(5000))),
            () => new Intl.NumberFormat("en", { minimumFractionDigits: 1e308 }),
            () => new Intl.NumberFormat("en", { numberingSystem: "a".repeat(1e6) }),
            () => new Intl.DateTimeFormat("en", { timeZone: "Europe/" + "x".repeat(1e6) }),
            () => new Intl.DateTimeFormat("en", { calendar: "gregory-u-nu-arab" }).format(0),
            () => new Intl.ListFormat("en").format(Array(10001).fill("a")),
            () => "a".localeCompare("b", "x".repeat(1e6)),
            () => "a".localeCompare("b", Array(65).fill("en")),
            () => new Intl.Segmenter("en", { granularity: "word" }).segment("a".repeat(300000)),
            () => new Intl.PluralRules("en").select({ valueOf() { throw new EvalError("v"); } }),
            () => "a".repeat(5e6).localeCompare("b"),
            () => new Intl.NumberFormat("en", { style: { toString() { return "percent"; } } }),
        ].map(name).concat(new Intl.NumberFormat("en").format(1234));
        "#,
    );
    assert_eq!(
        found.await.unwrap(),
        json!([
            "EvalError",
            "RangeError",
            "RangeError",
            "RangeError",
            "RangeError",
            "RangeError",
            "RangeError",
            "RangeError",
            "RangeError",
            "RangeError",
            "RangeError",
            "EvalError",
            "RangeError",
            "taken",
            "1,234"
        ])
    );
}

#[tokio::test]
async fn more_formatters_than_are_kept_still_work() {
    let found = eval(
        r#"
        const all = Array.from({ length: 100 }, (_, i) => new Intl.NumberFormat("de", { minimumFractionDigits: i, maximumFractionDigits: 100 }));
        return all.every((f, i) => f.format(1).length === (i === 0 ? 1 : i + 2)) && all.every((f, i) => f.format(2).length === (i === 0 ? 1 : i + 2));
        "#,
    );
    assert_eq!(found.await.unwrap(), json!(true));
}
