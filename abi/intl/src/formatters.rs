//! A bounded store of made formatters, by kind and options.

use std::{cmp::Ordering, collections::HashMap, rc::Rc};

use serde::de::DeserializeOwned;

use crate::{
    collate::Collator,
    date::Dates,
    error::{IntlError, bounded, clip},
    limits::{MAX_FORMATTERS, MAX_OPTIONS_BYTES},
    list::Lists,
    number::Numbers,
    parts::PartText,
    plural::Plurals,
};

/// One made formatter.
pub enum Formatter {
    /// Compares text.
    Collator(Collator),
    /// Formats numbers.
    Numbers(Numbers),
    /// Formats instants.
    Dates(Box<Dates>),
    /// Chooses plural forms.
    Plurals(Plurals),
    /// Joins lists.
    Lists(Lists),
}

fn options<T: DeserializeOwned>(spec: &str) -> Result<T, IntlError> {
    bounded("the options", spec.len(), MAX_OPTIONS_BYTES)?;
    serde_json::from_str(spec).map_err(|error| IntlError::InvalidValue { message: clip(&error.to_string()) })
}

impl Formatter {
    /// `kind` is the first letter of the service: `c`ollator, `n`umbers, `d`ates, `p`lurals, `l`ists; `spec` its options as JSON.
    pub fn new(kind: char, spec: &str) -> Result<Self, IntlError> {
        Ok(match kind {
            'c' => Self::Collator(Collator::new(&options(spec)?)?),
            'n' => Self::Numbers(Numbers::new(&options(spec)?)?),
            'd' => Self::Dates(Box::new(Dates::new(&options(spec)?)?)),
            'p' => Self::Plurals(Plurals::new(&options(spec)?)?),
            'l' => Self::Lists(Lists::new(&options(spec)?)?),
            other => return Err(IntlError::InvalidValue { message: format!("there is no service {other:?}") }),
        })
    }

    /// Compares text.
    pub fn compare(&self, left: &str, right: &str) -> Result<Ordering, IntlError> {
        match self {
            Self::Collator(collator) => collator.compare(left, right),
            _ => Err(mismatch()),
        }
    }

    /// Formats a number given as JavaScript writes it, or chooses its plural form.
    pub fn number(&self, number: &str) -> Result<Vec<PartText>, IntlError> {
        match self {
            Self::Numbers(numbers) => numbers.format(number),
            Self::Plurals(plurals) => Ok(vec![("plural", plurals.select(number)?.to_owned())]),
            _ => Err(mismatch()),
        }
    }

    /// Formats an instant in milliseconds since 1970.
    pub fn instant(&self, time_ms: f64) -> Result<Vec<PartText>, IntlError> {
        match self {
            Self::Dates(dates) => dates.format(time_ms),
            _ => Err(mismatch()),
        }
    }

    /// Joins a list.
    pub fn list(&self, members: &[String]) -> Result<Vec<PartText>, IntlError> {
        match self {
            Self::Lists(lists) => lists.format(members),
            _ => Err(mismatch()),
        }
    }
}

fn mismatch() -> IntlError {
    IntlError::InvalidValue { message: "this service does not do that".into() }
}

/// Formatters that were made, [`MAX_FORMATTERS`] at most. Making one costs much more than using it.
#[derive(Default)]
pub struct Formatters {
    made: HashMap<String, (u64, Rc<Formatter>)>,
    last: Option<(String, Rc<Formatter>)>,
    clock: u64,
}

impl Formatters {
    /// The formatter of a key: the kind's letter and the options as JSON behind it.
    pub fn get(&mut self, key: &str) -> Result<Rc<Formatter>, IntlError> {
        // Sorting asks for the same one again and again.
        if let Some((last, found)) = &self.last
            && last == key
        {
            return Ok(Rc::clone(found));
        }
        self.clock += 1;
        let found = if let Some((used, found)) = self.made.get_mut(key) {
            *used = self.clock;
            Rc::clone(found)
        } else {
            let kind = key.chars().next().unwrap_or(' ');
            let made = Rc::new(Formatter::new(kind, key.get(kind.len_utf8()..).unwrap_or_default())?);
            if self.made.len() >= MAX_FORMATTERS {
                let oldest = self.made.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| key.clone());
                oldest.map(|key| self.made.remove(&key));
            }
            self.made.insert(key.to_owned(), (self.clock, Rc::clone(&made)));
            made
        };
        self.last = Some((key.to_owned(), Rc::clone(&found)));
        Ok(found)
    }

    /// How many are kept.
    pub fn len(&self) -> usize {
        self.made.len()
    }

    /// Is none kept?
    pub fn is_empty(&self) -> bool {
        self.made.is_empty()
    }
}
