//! Where requests go: a checked base URL.

use std::fmt;
use std::net::IpAddr;

use http::Uri;
use http::uri::Scheme;

/// A base URL that may carry a key: https to anywhere, or http(s) to this machine. No user name, query or fragment.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    origin: String,
    /// Path prefix without a slash at its end.
    prefix: String,
    host: String,
    loopback: bool,
}

/// Why text is no [`Endpoint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointProblem {
    /// Not a web address, or with parts it may not have.
    Malformed(&'static str),
    /// http to another machine.
    Insecure,
}

impl Endpoint {
    /// Reads a base URL.
    ///
    /// # Errors
    /// [`EndpointProblem`]; it never repeats the text.
    pub fn parse(text: &str) -> Result<Self, EndpointProblem> {
        use EndpointProblem::{Insecure, Malformed};
        if text.contains('#') {
            return Err(Malformed("must have no fragment"));
        }
        if text.contains('\\') {
            return Err(Malformed("must have no backslash"));
        }
        let uri: Uri = text.trim().parse().map_err(|_| Malformed("is not a web address"))?;
        let secure = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            Some(scheme) if *scheme == Scheme::HTTP => false,
            _ => return Err(Malformed("must start with https:// or http://")),
        };
        let authority = uri.authority().ok_or(Malformed("names no host"))?;
        if authority.as_str().contains('@') {
            return Err(Malformed("must hold no user name or password"));
        }
        if uri.query().is_some() {
            return Err(Malformed("must have no query"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        if host.is_empty() {
            return Err(Malformed("names no host"));
        }
        let loopback = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        if !secure && !loopback {
            return Err(Insecure);
        }
        let scheme = if secure { "https" } else { "http" };
        Ok(Self {
            origin: format!("{scheme}://{}", authority.as_str().to_ascii_lowercase()),
            prefix: uri.path().trim_end_matches('/').to_owned(),
            host,
            loopback,
        })
    }

    /// Scheme, host and port: safe to show.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Host name, lower case, an IPv6 address without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Does it name this machine?
    pub fn is_loopback(&self) -> bool {
        self.loopback
    }

    /// The address of `path` (starting with a slash) below this base.
    pub fn at(&self, path: &str) -> String {
        format!("{}{}{path}", self.origin, self.prefix)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_apart() {
        for (text, whole) in [
            ("https://API.example.com/v1/", "https://api.example.com/v1/x"),
            ("https://example.com:8443", "https://example.com:8443/x"),
            ("http://localhost:11434/v1", "http://localhost:11434/v1/x"),
            ("http://127.9.0.1/", "http://127.9.0.1/x"),
            ("http://[::1]:80/a//", "http://[::1]:80/a/x"),
        ] {
            assert_eq!(Endpoint::parse(text).map(|endpoint| endpoint.at("/x")), Ok(whole.to_owned()));
        }
        for text in [
            "http://example.com",
            "http://10.0.0.1",
            "http://127.1",
            "http://2130706433",
            "http://localhost.evil.com",
            "http://[::ffff:7f00:1]",
        ] {
            assert_eq!(Endpoint::parse(text), Err(EndpointProblem::Insecure), "{text}");
        }
        for text in [
            "",
            "example.com/v1",
            "ftp://example.com",
            "https://",
            "https:///v1",
            "https://u:p@example.com",
            "https://example.com/?k=1",
            "https://example.com/#a",
            "https://exa mple.com",
            "https://example.com\\@localhost",
            "javascript:alert(1)",
            "https://exämple.com",
        ] {
            assert!(matches!(Endpoint::parse(text), Err(EndpointProblem::Malformed(_))), "{text}");
        }
    }
}
