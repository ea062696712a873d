//! Dates and times.

use icu_datetime::{
    DateTimeFormatter, DateTimeFormatterPreferences,
    fieldsets::{
        builder::{DateFields, FieldSetBuilder, ZoneStyle},
        enums::CompositeFieldSet,
    },
    options::{Alignment, Length, SubsecondDigits, TimePrecision, YearStyle},
};
use icu_locale::preferences::extensions::unicode::keywords::HourCycle;
use serde::Deserialize;
use writeable::Part;

use crate::{
    error::IntlError,
    locale::parse,
    parts::{PartText, cut},
    zone::Zone,
};

/// Options of [`Dates`], each as the standard names its values.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(missing_docs, reason = "the fields are those of the standard")]
pub struct DateOptions {
    pub locale: String,
    pub calendar: Option<String>,
    pub numbering_system: Option<String>,
    pub time_zone: Option<String>,
    pub hour12: Option<bool>,
    pub hour_cycle: Option<String>,
    pub date_style: Option<String>,
    pub time_style: Option<String>,
    pub weekday: Option<String>,
    pub era: Option<String>,
    pub year: Option<String>,
    pub month: Option<String>,
    pub day: Option<String>,
    pub hour: Option<String>,
    pub minute: Option<String>,
    pub second: Option<String>,
    pub fractional_second_digits: Option<u8>,
    pub time_zone_name: Option<String>,
    pub day_period: Option<String>,
}

/// Formats instants.
pub struct Dates {
    formatter: DateTimeFormatter<CompositeFieldSet>,
    zone: Zone,
    short_zone_name: bool,
    unpadded: bool,
}

/// Languages that write days and months without a leading zero when they are asked for as numbers, though their short
/// date has one. Sorted.
const UNPADDED: &[&str] = &[
    "am", "cs", "cy", "da", "de", "et", "gd", "gl", "id", "ja", "ka", "nb", "nl", "nn", "no", "pcm", "si", "so", "sw",
    "te",
];

impl Dates {
    /// Fails on values that do not exist and on combinations there are no patterns for.
    pub fn new(options: &DateOptions) -> Result<Self, IntlError> {
        let zone = Zone::find(options.time_zone.as_deref().unwrap_or("UTC"))?;
        let mut tag = options.locale.clone();
        if options.calendar.is_some() || options.numbering_system.is_some() {
            tag.push_str("-u");
        }
        for (key, value) in [("ca", &options.calendar), ("nu", &options.numbering_system)] {
            if let Some(value) = value {
                tag = format!("{tag}-{key}-{value}");
            }
        }
        let locale = parse(&tag)?;
        let mut prefs = DateTimeFormatterPreferences::from(&locale);
        prefs.hour_cycle = match (options.hour12, options.hour_cycle.as_deref()) {
            (Some(true), _) => Some(HourCycle::Clock12),
            (Some(false), _) => Some(HourCycle::Clock24),
            (None, None) => None,
            (None, Some("h11")) => Some(HourCycle::H11),
            (None, Some("h12")) => Some(HourCycle::H12),
            (None, Some("h23" | "h24")) => Some(HourCycle::H23),
            (None, Some(other)) => return Err(IntlError::option("hourCycle", other, "h11, h12 or h23")),
        };
        let fields = if options.date_style.is_some() || options.time_style.is_some() {
            styles(options)?
        } else {
            components(options)?
        };
        let set = fields.build_composite().map_err(|error| IntlError::Unsupported {
            what: format!("this combination of date and time components ({error})"),
            instead: "use dateStyle and timeStyle, or put formatted pieces together",
        })?;
        let numeric = |option: &Option<String>| option.as_deref() == Some("numeric");
        Ok(Self {
            formatter: DateTimeFormatter::try_new(prefs, set).map_err(IntlError::data)?,
            zone,
            short_zone_name: options.time_style.as_deref() == Some("long")
                || options.time_zone_name.as_deref() == Some("short"),
            unpadded: numeric(&options.year)
                && numeric(&options.month)
                && numeric(&options.day)
                && UNPADDED.binary_search(&locale.id.language.as_str()).is_ok(),
        })
    }

    /// An instant in milliseconds since 1970, in parts.
    pub fn format(&self, time_ms: f64) -> Result<Vec<PartText>, IntlError> {
        let at = self.zone.civil(time_ms)?;
        let mut parts = cut(&self.formatter.format(&at), name);
        for (name, text) in &mut parts {
            match *name {
                "timeZoneName" if self.short_zone_name && self.zone.name() == "UTC" => *text = "UTC".into(),
                "day" | "month" if self.unpadded && text.len() > 1 && text.starts_with('0') => {
                    text.remove(0);
                }
                _ => {}
            }
        }
        Ok(parts)
    }

    /// The zone.
    pub fn zone(&self) -> &Zone {
        &self.zone
    }
}

fn name(part: Part) -> Option<&'static str> {
    match (part.category, part.value) {
        ("datetime", value) => Some(value),
        ("decimal", "decimal") => Some("literal"),
        ("decimal", "fraction") => Some("fractionalSecond"),
        _ => None,
    }
}

fn styles(options: &DateOptions) -> Result<FieldSetBuilder, IntlError> {
    let mut fields = FieldSetBuilder::new();
    let accepted = "full, long, medium or short";
    match options.date_style.as_deref() {
        None => {}
        Some("full") => (fields.date_fields, fields.length) = (Some(DateFields::YMDE), Some(Length::Long)),
        Some("long") => (fields.date_fields, fields.length) = (Some(DateFields::YMD), Some(Length::Long)),
        Some("medium") => (fields.date_fields, fields.length) = (Some(DateFields::YMD), Some(Length::Medium)),
        Some("short") => (fields.date_fields, fields.length) = (Some(DateFields::YMD), Some(Length::Short)),
        Some(other) => return Err(IntlError::option("dateStyle", other, accepted)),
    }
    match options.time_style.as_deref() {
        None => {}
        Some("full") => {
            (fields.time_precision, fields.zone_style) = (Some(TimePrecision::Second), Some(ZoneStyle::SpecificLong));
        }
        Some("long") => {
            (fields.time_precision, fields.zone_style) = (Some(TimePrecision::Second), Some(ZoneStyle::SpecificShort));
        }
        Some("medium") => fields.time_precision = Some(TimePrecision::Second),
        Some("short") => fields.time_precision = Some(TimePrecision::Minute),
        Some(other) => return Err(IntlError::option("timeStyle", other, accepted)),
    }
    Ok(fields)
}

fn components(options: &DateOptions) -> Result<FieldSetBuilder, IntlError> {
    let unsupported = |what: &str, instead| IntlError::Unsupported { what: what.to_owned(), instead };
    let mut fields = FieldSetBuilder::new();
    let has = |option: &Option<String>| option.is_some();
    fields.date_fields = match (has(&options.year), has(&options.month), has(&options.day), has(&options.weekday)) {
        (false, false, false, false) => None,
        (true, true, true, true) => Some(DateFields::YMDE),
        (true, true, true, false) => Some(DateFields::YMD),
        (true, true, false, false) => Some(DateFields::YM),
        (true, false, false, false) => Some(DateFields::Y),
        (false, true, true, true) => Some(DateFields::MDE),
        (false, true, true, false) => Some(DateFields::MD),
        (false, true, false, false) => Some(DateFields::M),
        (false, false, true, true) => Some(DateFields::DE),
        (false, false, true, false) => Some(DateFields::D),
        (false, false, false, true) => Some(DateFields::E),
        _ => return Err(unsupported("a date of these components", "add month and day, or leave year or weekday out")),
    };
    let month = match options.month.as_deref() {
        None => None,
        Some("long") => Some(Length::Long),
        Some("short" | "narrow") => Some(Length::Medium),
        Some(_) => Some(Length::Short),
    };
    let weekday = match options.weekday.as_deref() {
        None => None,
        Some("long") => Some(Length::Long),
        Some("short") => Some(Length::Medium),
        Some(_) => Some(Length::Short),
    };
    fields.length = Some(month.or(weekday).unwrap_or(Length::Short));
    if options.year.is_some() {
        fields.year_style = Some(match (options.era.is_some(), options.year.as_deref()) {
            (true, _) => YearStyle::WithEra,
            (false, Some("2-digit")) => YearStyle::Auto,
            (false, _) => YearStyle::Full,
        });
    } else if options.era.is_some() {
        return Err(unsupported("an era without a year", "add year"));
    }
    if options.day_period.is_some() {
        return Err(unsupported("dayPeriod", "use hour with hour12: true"));
    }
    let fraction = options.fractional_second_digits.map(|digits| match digits {
        1 => Ok(SubsecondDigits::S1),
        2 => Ok(SubsecondDigits::S2),
        3 => Ok(SubsecondDigits::S3),
        other => Err(IntlError::option("fractionalSecondDigits", &other.to_string(), "1 to 3")),
    });
    fields.time_precision =
        match (has(&options.hour), has(&options.minute), has(&options.second), fraction.transpose()?) {
            (true, true, true, Some(digits)) => Some(TimePrecision::Subsecond(digits)),
            (true, true, true, None) => Some(TimePrecision::Second),
            (true, true, false, None) => Some(TimePrecision::Minute),
            (true, false, false, None) => Some(TimePrecision::Hour),
            (false, false, false, None) => None,
            _ => return Err(unsupported("a time of these components", "name hour, then minute, then second")),
        };
    fields.zone_style = match options.time_zone_name.as_deref() {
        None => None,
        Some("short") => Some(ZoneStyle::SpecificShort),
        Some("long") => Some(ZoneStyle::SpecificLong),
        Some("shortOffset") => Some(ZoneStyle::LocalizedOffsetShort),
        Some("longOffset") => Some(ZoneStyle::LocalizedOffsetLong),
        Some("shortGeneric") => Some(ZoneStyle::GenericShort),
        Some("longGeneric") => Some(ZoneStyle::GenericLong),
        Some(other) => {
            return Err(IntlError::option(
                "timeZoneName",
                other,
                "short, long, shortOffset, longOffset, shortGeneric or longGeneric",
            ));
        }
    };
    let two_digits = |option: &Option<String>| option.as_deref() == Some("2-digit");
    if two_digits(&options.day) || two_digits(&options.month) || two_digits(&options.hour) {
        fields.alignment = Some(Alignment::Column);
    }
    Ok(fields)
}
