//! Which names a request may call the server by.

use std::net::{IpAddr, SocketAddr};

/// Suffixes of names that no public domain has.
const PRIVATE: &[&str] = &[".localhost", ".svc", ".cluster.local"];

/// Whether a `Host` header names this server: an address, a name without dots, a private name, or
/// the host of `base`. A web page whose own domain leads to loopback names that domain, and is
/// refused with it. A request without the header is no browser's.
pub(crate) fn is_own(host: Option<&str>, base: &str) -> bool {
    let Some(host) = host else { return true };
    if host.parse::<SocketAddr>().is_ok() || host.parse::<IpAddr>().is_ok() {
        return true;
    }
    let plain = |name: &str| {
        let name = name.rsplit_once(':').map_or(name, |(name, _)| name);
        name.trim_end_matches('.').to_ascii_lowercase()
    };
    let name = plain(host);
    let of_base = base.split_once("://").map_or(base, |(_, rest)| rest);
    let of_base = plain(of_base.split('/').next().unwrap_or(""));
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    bare.parse::<IpAddr>().is_ok()
        || !name.contains('.')
        || PRIVATE.iter().any(|suffix| name.ends_with(suffix))
        || name == of_base
}

#[cfg(test)]
mod tests {
    use super::is_own;

    #[test]
    fn a_domain_that_leads_to_loopback_is_not_ours() {
        let base = "http://azure.example.com:8002";
        for host in ["127.0.0.1:8002", "[::1]:8002", "::1", "localhost:8002", "azure", "x.svc"] {
            assert!(is_own(Some(host), base), "{host}");
        }
        assert!(is_own(None, base) && is_own(Some("AZURE.example.com."), base));
        for host in ["evil.example.net", "127.0.0.1.nip.io:8002", "localhost.evil.net"] {
            assert!(!is_own(Some(host), base), "{host}");
        }
    }
}
