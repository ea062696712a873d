//! Numbers: decimal, percent, compact.

use fixed_decimal::{Decimal, SignDisplay};
use icu_decimal::{
    CompactDecimalFormatter, DecimalFormatter, DecimalFormatterPreferences,
    options::{CompactDecimalFormatterOptions, DecimalFormatterOptions, GroupingStrategy},
    preferences::CompactDecimalFormatterPreferences,
};
use serde::Deserialize;
use writeable::{Part, Writeable};

use crate::{
    digits::{Digits, decimal},
    error::IntlError,
    locale::parse,
    parts::{PartText, cut},
};

/// Options of [`Numbers`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NumberOptions {
    /// Language, script, region.
    pub locale: String,
    /// Such as `latn` or `arab`.
    pub numbering_system: Option<String>,
    /// `decimal` or `percent`. `currency` and `unit` are refused.
    pub style: Option<String>,
    /// `standard` or `compact`.
    pub notation: Option<String>,
    /// `short` or `long`.
    pub compact_display: Option<String>,
    /// `auto`, `always`, `min2` or `false`.
    pub use_grouping: Option<String>,
    /// `auto`, `always`, `never`, `exceptZero` or `negative`.
    pub sign_display: Option<String>,
    /// How many digits.
    #[serde(flatten)]
    pub digits: Digits,
}

/// Where a language writes its percent sign. Sorted by the language; all others write it directly behind the number.
const PERCENT: &[(&str, Percent)] = &[
    ("ar", Percent::Behind("\u{200e}%\u{200e}")),
    ("be", Percent::Behind("\u{a0}%")),
    ("ca", Percent::Behind("\u{a0}%")),
    ("cs", Percent::Behind("\u{a0}%")),
    ("da", Percent::Behind("\u{a0}%")),
    ("de", Percent::Behind("\u{a0}%")),
    ("es", Percent::Behind("\u{a0}%")),
    ("eu", Percent::Before("%\u{a0}")),
    ("fi", Percent::Behind("\u{a0}%")),
    ("fr", Percent::Behind("\u{a0}%")),
    ("gl", Percent::Behind("\u{a0}%")),
    ("hr", Percent::Behind("\u{a0}%")),
    ("lt", Percent::Behind("\u{a0}%")),
    ("mk", Percent::Behind("\u{a0}%")),
    ("nb", Percent::Behind("\u{a0}%")),
    ("nn", Percent::Behind("\u{a0}%")),
    ("no", Percent::Behind("\u{a0}%")),
    ("ro", Percent::Behind("\u{a0}%")),
    ("ru", Percent::Behind("\u{a0}%")),
    ("sk", Percent::Behind("\u{a0}%")),
    ("sl", Percent::Behind("\u{a0}%")),
    ("sv", Percent::Behind("\u{a0}%")),
    ("tk", Percent::Behind("\u{a0}%")),
    ("tr", Percent::Before("%")),
];

#[derive(Clone, Copy)]
enum Percent {
    Before(&'static str),
    Behind(&'static str),
}

enum Kind {
    Plain(DecimalFormatter),
    Compact(CompactDecimalFormatter),
}

/// Formats numbers.
pub struct Numbers {
    kind: Kind,
    percent: Option<Percent>,
    sign: SignDisplay,
    digits: Digits,
    own_digits: bool,
    infinity_sign: DecimalFormatter,
}

impl Numbers {
    /// Fails on values that do not exist and on styles there is no data for.
    pub fn new(options: &NumberOptions) -> Result<Self, IntlError> {
        let tag = match &options.numbering_system {
            Some(system) => format!("{}-u-nu-{system}", options.locale),
            None => options.locale.clone(),
        };
        let locale = parse(&tag)?;
        let percent = match options.style.as_deref() {
            None | Some("decimal") => None,
            Some("percent") => {
                let language = locale.id.language.as_str();
                let own = PERCENT.binary_search_by_key(&language, |(name, _)| name);
                Some(own.map_or(Percent::Behind("%"), |at| PERCENT[at].1))
            }
            Some(style @ ("currency" | "unit")) => {
                return Err(IntlError::Unsupported {
                    what: format!("Intl.NumberFormat with style {style:?}"),
                    instead: "format the number with style \"decimal\" and write the currency or unit beside it",
                });
            }
            Some(other) => return Err(IntlError::option("style", other, "decimal or percent")),
        };
        let grouping = match options.use_grouping.as_deref() {
            None | Some("auto") => None,
            Some("always") => Some(GroupingStrategy::Always),
            Some("min2") => Some(GroupingStrategy::Min2),
            Some("false") => Some(GroupingStrategy::Never),
            Some(other) => return Err(IntlError::option("useGrouping", other, "auto, always, min2 or false")),
        };
        let sign = match options.sign_display.as_deref() {
            None | Some("auto") => SignDisplay::Auto,
            Some("always") => SignDisplay::Always,
            Some("never") => SignDisplay::Never,
            Some("exceptZero") => SignDisplay::ExceptZero,
            Some("negative") => SignDisplay::Negative,
            Some(other) => {
                return Err(IntlError::option("signDisplay", other, "auto, always, never, exceptZero or negative"));
            }
        };
        let plain = |grouping: Option<GroupingStrategy>| {
            let mut fine = DecimalFormatterOptions::default();
            fine.grouping_strategy = grouping;
            DecimalFormatter::try_new(DecimalFormatterPreferences::from(&locale), fine).map_err(IntlError::data)
        };
        let kind = match options.notation.as_deref() {
            None | Some("standard") => Kind::Plain(plain(grouping)?),
            Some("compact") => {
                let mut fine = CompactDecimalFormatterOptions::default();
                if grouping.is_some() {
                    fine.grouping_strategy = grouping;
                }
                let prefs = CompactDecimalFormatterPreferences::from(&locale);
                let made = match options.compact_display.as_deref() {
                    None | Some("short") => CompactDecimalFormatter::try_new_short(prefs, fine),
                    Some("long") => CompactDecimalFormatter::try_new_long(prefs, fine),
                    Some(other) => return Err(IntlError::option("compactDisplay", other, "short or long")),
                };
                Kind::Compact(made.map_err(IntlError::data)?)
            }
            Some(notation @ ("scientific" | "engineering")) => {
                return Err(IntlError::Unsupported {
                    what: format!("Intl.NumberFormat with notation {notation:?}"),
                    instead: "Number.prototype.toExponential",
                });
            }
            Some(other) => return Err(IntlError::option("notation", other, "standard or compact")),
        };
        let d = &options.digits;
        let own_digits = d.minimum_fraction_digits.is_some()
            || d.maximum_fraction_digits.is_some()
            || d.minimum_significant_digits.is_some()
            || d.maximum_significant_digits.is_some();
        Ok(Self { kind, percent, sign, digits: d.checked()?, own_digits, infinity_sign: plain(None)? })
    }

    /// A number as JavaScript writes it, in parts.
    pub fn format(&self, number: &str) -> Result<Vec<PartText>, IntlError> {
        let mut parts = match decimal(number)? {
            None if number == "NaN" => vec![("nan", "NaN".to_owned())],
            None => self.infinite(number.starts_with('-')),
            Some(mut value) => {
                if self.percent.is_some() {
                    value.multiply_pow10(2);
                }
                match &self.kind {
                    Kind::Plain(formatter) => {
                        self.digits.apply(&mut value);
                        value.apply_sign_display(self.sign);
                        cut(&formatter.format(&value), number_part)
                    }
                    Kind::Compact(formatter) => self.compact(formatter, value),
                }
            }
        };
        match self.percent {
            Some(Percent::Before(sign)) => {
                let at = usize::from(matches!(parts.first(), Some(("minusSign" | "plusSign", _))));
                parts.insert(at, ("percentSign", sign.to_owned()));
            }
            Some(Percent::Behind(sign)) => {
                let (space, sign) = match sign.chars().next() {
                    Some(space @ ('\u{a0}' | '\u{202f}')) => (Some(space), &sign[space.len_utf8()..]),
                    _ => (None, sign),
                };
                parts.extend(space.map(|space| ("literal", space.to_string())));
                parts.push(("percentSign", sign.to_owned()));
            }
            None => {}
        }
        Ok(parts)
    }

    fn infinite(&self, negative: bool) -> Vec<PartText> {
        // The sign is the language's own: that of a digit, with the digit replaced.
        let mut one = Decimal::from(if negative { -1 } else { 1 });
        one.apply_sign_display(self.sign);
        let signed = cut(&self.infinity_sign.format(&one), number_part);
        signed
            .into_iter()
            .map(|(name, text)| if name == "integer" { ("infinity", "∞".to_owned()) } else { (name, text) })
            .collect()
    }

    /// The formatter rounds halves to even, the standard away from zero: the number is rounded before.
    fn compact(&self, formatter: &CompactDecimalFormatter, mut value: Decimal) -> Vec<PartText> {
        let magnitude =
            |value: &Decimal| if value.absolute.is_zero() { 0 } else { value.absolute.nonzero_magnitude_start() };
        let exponent = i16::from(formatter.compact_exponent_for_magnitude(magnitude(&value)));
        let round = |value: &mut Decimal, exponent: i16| {
            value.multiply_pow10(-exponent);
            if self.own_digits {
                self.digits.apply(value);
            } else {
                let integers = magnitude(value) + 1;
                let fine = Digits {
                    maximum_fraction_digits: Some(if integers >= 2 { 0 } else { 0.max(2 - integers.max(-98)) as u8 }),
                    rounding_mode: self.digits.rounding_mode.clone(),
                    ..Digits::default()
                };
                fine.apply(value);
            }
        };
        let unrounded = value.clone();
        round(&mut value, exponent);
        // 999,999 rounds up into the next step.
        let again = i16::from(formatter.compact_exponent_for_magnitude(magnitude(&value).saturating_add(exponent)));
        let exponent = if again == exponent {
            exponent
        } else {
            value = unrounded;
            round(&mut value, again);
            again
        };
        value.apply_sign_display(self.sign);
        let text = formatter.format_with_exponent(&value, exponent as u8);
        match text {
            Ok(text) => compact_parts(&text),
            Err(_) => cut(&self.infinity_sign.format(&value), number_part),
        }
    }
}

fn compact_parts(text: &impl Writeable) -> Vec<PartText> {
    let parts = cut(text, |part| number_part(part).or_else(|| (part.category == "compact").then_some("compact")));
    // What stands beside the digits is the name of the step, with the space before it apart.
    let mut out = Vec::with_capacity(parts.len() + 1);
    for (name, text) in parts {
        if name != "literal" {
            out.push((name, text));
            continue;
        }
        let word = text.trim_start_matches([' ', '\u{a0}', '\u{202f}']);
        let space = &text[..text.len() - word.len()];
        if !space.is_empty() {
            out.push(("literal", space.to_owned()));
        }
        if !word.is_empty() {
            out.push(("compact", word.to_owned()));
        }
    }
    out
}

fn number_part(part: Part) -> Option<&'static str> {
    (part.category == "decimal").then_some(part.value)
}
