//! Which names a request may call the server by.

use std::net::{IpAddr, SocketAddr};

/// Suffixes of names that no public domain has.
const PRIVATE: &[&str] = &[".localhost", ".svc", ".cluster.local"];

/// Whether a `Host` header names this server: an address, a name without dots or a private name.
/// A web page whose own domain leads to loopback names that domain, and is refused. A request
/// without the header is no browser's.
pub(super) fn is_own(host: Option<&str>) -> bool {
    let Some(host) = host else { return true };
    if host.parse::<SocketAddr>().is_ok() || host.parse::<IpAddr>().is_ok() {
        return true;
    }
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    bare.parse::<IpAddr>().is_ok()
        || !name.contains('.')
        || PRIVATE.iter().any(|suffix| name.ends_with(suffix))
}

#[cfg(test)]
mod tests {
    use super::is_own;

    #[test]
    fn a_domain_that_leads_to_loopback_is_not_ours() {
        for host in
            ["127.0.0.1:8002", "[::1]:8002", "::1", "localhost:8002", "kubernetes.default.svc"]
        {
            assert!(is_own(Some(host)), "{host}");
        }
        assert!(is_own(None));
        for host in ["evil.example.net", "127.0.0.1.nip.io:8002", "localhost.evil.net"] {
            assert!(!is_own(Some(host)), "{host}");
        }
    }
}
