//! Addresses of servers, and which of them may be spoken to in the clear.

use http::Uri;
use std::fmt;
use std::net::IpAddr;

/// Scheme, host and port of a server, with a base path where it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    scheme: Scheme,
    host: String,
    port: u16,
    base: String,
}

/// How a server is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// With TLS.
    Https,
    /// In the clear, which is allowed on this machine's loopback only.
    LoopbackHttp,
}

/// Why an address is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OriginError {
    /// It is no URL with a host.
    #[error("{what} \"{url}\" is no URL of the form https://host[:port]; check the setting")]
    Malformed {
        /// What the address is for.
        what: &'static str,
        /// The address.
        url: String,
    },
    /// It is plain HTTP to another machine.
    #[error(
        "{what} \"{url}\" is plain HTTP: credentials and answers would cross the network in the \
         clear. Use https; plain HTTP is accepted on loopback (127.0.0.0/8, ::1, localhost) only"
    )]
    InTheClear {
        /// What the address is for.
        what: &'static str,
        /// The address.
        url: String,
    },
}

impl Origin {
    /// Parses an address. `what` names the setting in errors.
    ///
    /// # Errors
    /// Anything but `https` everywhere and `http` on loopback; an address with user or password.
    pub fn parse(what: &'static str, url: &str) -> Result<Self, OriginError> {
        let malformed = || OriginError::Malformed { what, url: without_query(url) };
        let uri: Uri = url.trim().parse().map_err(|_| malformed())?;
        let authority = uri.authority().ok_or_else(malformed)?;
        if authority.as_str().contains('@') {
            return Err(OriginError::Malformed { what, url: "(with user information)".into() });
        }
        let host = authority.host().to_ascii_lowercase();
        if host.is_empty() {
            return Err(malformed());
        }
        let scheme = match uri.scheme_str() {
            Some("https") => Scheme::Https,
            Some("http") if is_loopback(&host) => Scheme::LoopbackHttp,
            Some("http") => return Err(OriginError::InTheClear { what, url: without_query(url) }),
            _ => return Err(malformed()),
        };
        let default = if scheme == Scheme::Https { 443 } else { 80 };
        let port = authority.port_u16().unwrap_or(default);
        let base = uri.path().trim_end_matches('/').to_string();
        Ok(Self { scheme, host, port, base })
    }

    /// How it is spoken to.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Whether both lead to the same scheme, host and port.
    #[must_use]
    pub fn is_same_server(&self, other: &Self) -> bool {
        self.scheme == other.scheme && self.host == other.host && self.port == other.port
    }

    /// The URL of a path (and query) below this address.
    #[must_use]
    pub fn join(&self, path: &str) -> String {
        let slash = if path.starts_with('/') { "" } else { "/" };
        format!("{self}{slash}{path}")
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, default) = match self.scheme {
            Scheme::Https => ("https", 443),
            Scheme::LoopbackHttp => ("http", 80),
        };
        write!(f, "{scheme}://{}", self.host)?;
        if self.port != default {
            write!(f, ":{}", self.port)?;
        }
        f.write_str(&self.base)
    }
}

/// A URL without its query, which may hold a secret.
pub(crate) fn without_query(url: &str) -> String {
    url.split(['?', '#']).next().unwrap_or("").to_string()
}

pub(crate) fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|a| a.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Origin, OriginError> {
        Origin::parse("resourceManagerEndpoint", url)
    }

    #[test]
    fn plain_http_is_for_loopback_only() {
        for url in
            ["http://127.0.0.1:8080", "http://127.9.9.9/", "http://[::1]:1", "http://localhost"]
        {
            assert_eq!(parse(url).unwrap().scheme(), Scheme::LoopbackHttp, "{url}");
        }
        for url in ["http://10.0.0.1", "http://localhost.example.com", "http://[fd00::1]:1"] {
            let error = parse(url).unwrap_err();
            assert!(matches!(error, OriginError::InTheClear { .. }), "{url}: {error}");
            assert!(error.to_string().contains("resourceManagerEndpoint"));
        }
        for url in ["", "management.azure.com", "ftp://x", "https://", "/subscriptions"] {
            assert!(matches!(parse(url), Err(OriginError::Malformed { .. })), "{url}");
        }
    }

    #[test]
    fn user_information_is_refused_and_not_repeated() {
        let error = parse("https://user:secret@management.azure.com").unwrap_err();
        assert!(!error.to_string().contains("secret"));
    }

    #[test]
    fn servers_compare_without_case_and_with_default_ports() {
        let arm = parse("https://management.azure.com/").unwrap();
        assert!(arm.is_same_server(&parse("https://Management.Azure.com:443/x?y=z").unwrap()));
        assert!(!arm.is_same_server(&parse("https://management.azure.com.evil.example").unwrap()));
        assert!(!arm.is_same_server(&parse("https://management.azure.com:444").unwrap()));
        assert_eq!(
            arm.join("/subscriptions?a=b"),
            "https://management.azure.com/subscriptions?a=b"
        );
        assert_eq!(parse("http://[::1]:70/base/").unwrap().join("x"), "http://[::1]:70/base/x");
    }
}
