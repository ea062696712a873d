//! Numbers as decimal digits, and how many of them are shown.

use fixed_decimal::{Decimal, SignedRoundingMode, UnsignedRoundingMode};
use serde::Deserialize;

use crate::{
    error::{IntlError, clip},
    limits::MAX_NUMBER_DIGITS,
};

/// How many digits are shown. All defaults are those of a plain decimal number.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Digits {
    /// 1 to 21.
    pub minimum_integer_digits: Option<u8>,
    /// 0 to 100.
    pub minimum_fraction_digits: Option<u8>,
    /// 0 to 100, not below the minimum.
    pub maximum_fraction_digits: Option<u8>,
    /// 1 to 21. Significant digits win over fraction digits.
    pub minimum_significant_digits: Option<u8>,
    /// 1 to 21, not below the minimum.
    pub maximum_significant_digits: Option<u8>,
    /// As the standard names them: `halfExpand` and so on.
    pub rounding_mode: Option<String>,
}

impl Digits {
    pub(crate) fn checked(&self) -> Result<Self, IntlError> {
        let range = |name, value: Option<u8>, least: u8, most: u8, accepted| match value {
            Some(value) if value < least || value > most => Err(IntlError::option(name, &value.to_string(), accepted)),
            _ => Ok(()),
        };
        range("minimumIntegerDigits", self.minimum_integer_digits, 1, 21, "1 to 21")?;
        range("minimumFractionDigits", self.minimum_fraction_digits, 0, 100, "0 to 100")?;
        range("maximumFractionDigits", self.maximum_fraction_digits, 0, 100, "0 to 100")?;
        range("minimumSignificantDigits", self.minimum_significant_digits, 1, 21, "1 to 21")?;
        range("maximumSignificantDigits", self.maximum_significant_digits, 1, 21, "1 to 21")?;
        self.mode()?;
        Ok(self.clone())
    }

    fn mode(&self) -> Result<SignedRoundingMode, IntlError> {
        Ok(match self.rounding_mode.as_deref() {
            None | Some("halfExpand") => SignedRoundingMode::Unsigned(UnsignedRoundingMode::HalfExpand),
            Some("halfTrunc") => SignedRoundingMode::Unsigned(UnsignedRoundingMode::HalfTrunc),
            Some("halfEven") => SignedRoundingMode::Unsigned(UnsignedRoundingMode::HalfEven),
            Some("expand") => SignedRoundingMode::Unsigned(UnsignedRoundingMode::Expand),
            Some("trunc") => SignedRoundingMode::Unsigned(UnsignedRoundingMode::Trunc),
            Some("ceil") => SignedRoundingMode::Ceil,
            Some("floor") => SignedRoundingMode::Floor,
            Some("halfCeil") => SignedRoundingMode::HalfCeil,
            Some("halfFloor") => SignedRoundingMode::HalfFloor,
            Some(other) => {
                return Err(IntlError::option("roundingMode", other, "ceil, floor, expand, trunc or a half… mode"));
            }
        })
    }

    pub(crate) fn apply(&self, value: &mut Decimal) {
        let mode = self.mode().unwrap_or(SignedRoundingMode::Unsigned(UnsignedRoundingMode::HalfExpand));
        if self.minimum_significant_digits.is_some() || self.maximum_significant_digits.is_some() {
            let most = i16::from(self.maximum_significant_digits.unwrap_or(21));
            let least = i16::from(self.minimum_significant_digits.unwrap_or(1));
            if !value.absolute.is_zero() {
                value.round_with_mode(value.absolute.nonzero_magnitude_start() - most + 1, mode);
            }
            value.absolute.trim_end();
            let start = if value.absolute.is_zero() { 0 } else { value.absolute.nonzero_magnitude_start() };
            value.absolute.pad_end((start - least + 1).min(0));
        } else {
            let least = i16::from(self.minimum_fraction_digits.unwrap_or(0));
            let most = i16::from(self.maximum_fraction_digits.unwrap_or(3)).max(least);
            value.round_with_mode(-most, mode);
            value.absolute.trim_end();
            value.absolute.pad_end(-least);
        }
        value.absolute.trim_start();
        value.absolute.pad_start(i16::from(self.minimum_integer_digits.unwrap_or(1)));
    }
}

/// Digits of a number as JavaScript writes it (`1e21`, `-0`, a BigInt); nothing when it is not finite.
pub(crate) fn decimal(number: &str) -> Result<Option<Decimal>, IntlError> {
    if matches!(number, "NaN" | "Infinity" | "-Infinity") {
        return Ok(None);
    }
    if number.len() > MAX_NUMBER_DIGITS {
        return Err(IntlError::TooLarge { what: "the number", limit: format!("{MAX_NUMBER_DIGITS} digits") });
    }
    let bad = || IntlError::InvalidValue { message: format!("{} is not a number", clip(number)) };
    let exponent = number.split_once(['e', 'E']).map_or(Ok(0), |(_, e)| e.parse::<i32>()).map_err(|_| bad())?;
    if exponent.unsigned_abs() as usize > MAX_NUMBER_DIGITS {
        return Err(IntlError::TooLarge { what: "the number", limit: format!("{MAX_NUMBER_DIGITS} digits") });
    }
    Decimal::try_from_str(&number.replace("e+", "e")).map(Some).map_err(|_| bad())
}
