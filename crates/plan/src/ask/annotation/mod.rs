//! The one table of all annotations of a Service that mean something to us.
//!
//! What reads annotations, what explains them and what documents them all go by [`TABLE`].

mod reference;
mod table;

pub use reference::reference;
pub use table::TABLE;

use model::policy::BalancerSku;
use model::{Exposure, distance};

/// What keys of the Go cloud provider begin with; [`Annotation::key`] goes on from there.
pub const PREFIX: &str = "service.beta.kubernetes.io/";

/// What keys begin with that only Ballast has; [`Annotation::key`] is the whole key.
pub const OWN: &str = "ballast.dev/";

/// The annotation by which a Service lets other namespaces share its addresses.
pub const SHARE: &str = "ballast.dev/share-with-namespaces";

/// The annotation by which a Service agrees that private endpoints are disconnected.
pub const DISCONNECT: &str = "ballast.dev/disconnect-private-endpoints";

/// The annotation by which an owner has nothing of a Service written.
pub const PAUSE: &str = "ballast.dev/pause";

/// The annotation by which a Service keeps its load balancer when it is deleted.
pub const PROTECT: &str = "ballast.dev/deletion-protection";

/// The annotation by which a Service is interrupted only after its owner has confirmed it.
pub const CONFIRM: &str = "ballast.dev/confirm";

/// The annotation that lists what the owner has confirmed to go.
pub const CONFIRMED: &str = "ballast.dev/confirmed";

/// The annotation whose change has what Azure rejected attempted at once.
pub const RETRY: &str = "ballast.dev/retry-at";

/// The whole key.
#[must_use]
pub fn full(key: &str) -> String {
    if key.starts_with(OWN) { key.to_owned() } else { format!("{PREFIX}{key}") }
}

/// A whole key as the table has it, if it looks like one of ours.
#[must_use]
pub fn short(full: &str) -> Option<&str> {
    if full.starts_with(OWN) { Some(full) } else { full.strip_prefix(PREFIX) }
}

/// The place of a port number in [`Annotation::key`].
pub const PORT: &str = "{port}";

/// An annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// Key without [`PREFIX`], or whole where it begins with [`OWN`]; `{port}` stands for a port
    /// number.
    pub key: &'static str,
    /// What kind of value it has.
    pub kind: Kind,
    /// Values, in words.
    pub values: &'static str,
    /// What holds without it.
    pub default: &'static str,
    /// First version of Ballast that reads it.
    pub since: &'static str,
    /// What it does.
    pub effect: &'static str,
    /// What happens on another value.
    pub error: &'static str,
    /// Load balancers it counts on.
    pub reach: Reach,
    /// SKUs it counts on.
    pub skus: &'static [BalancerSku],
}

/// What kind of value an annotation has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// True or false.
    Flag(Truth),
    /// Anything else.
    Text,
}

/// What a flag counts as true; everything else is false. The Go controller compares in these three
/// ways, and a Service that it runs must not become another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// `true`.
    Exact,
    /// `true` in any letter case.
    AnyCase,
    /// The same, with blanks around it.
    Trimmed,
}

impl Truth {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Exact, Self::AnyCase, Self::Trimmed];

    /// Whether a value counts as true.
    #[must_use]
    pub fn is_true(self, value: &str) -> bool {
        match self {
            Self::Exact => value == "true",
            Self::AnyCase => value.eq_ignore_ascii_case("true"),
            Self::Trimmed => value.trim().eq_ignore_ascii_case("true"),
        }
    }
}

/// What the flag of this key, without [`PREFIX`], counts as true.
#[must_use]
pub fn truth(key: &str) -> Truth {
    match find(key).map(|found| found.annotation.kind) {
        Some(Kind::Flag(truth)) => truth,
        Some(Kind::Text) | None => Truth::AnyCase,
    }
}

/// The annotation that asks for an internal load balancer.
pub const INTERNAL: &str = "azure-load-balancer-internal";

impl Annotation {
    /// How a flag is read on load balancers of this SKU; `None` for what is no flag.
    ///
    /// The Go controller compares `azure-load-balancer-internal` in any letter case for container
    /// load balancers, where it refuses the Service, and exactly for others.
    #[must_use]
    pub fn truth(&self, sku: BalancerSku) -> Option<Truth> {
        match self.kind {
            Kind::Flag(_) if sku == BalancerSku::Service && self.key == INTERNAL => {
                Some(Truth::AnyCase)
            }
            Kind::Flag(truth) => Some(truth),
            Kind::Text => None,
        }
    }
}

/// Load balancers that an annotation counts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Public and internal ones.
    Any,
    /// Only one of the two.
    Only(Exposure),
}

impl Reach {
    /// Whether it counts on such a load balancer.
    #[must_use]
    pub fn covers(self, exposure: Exposure) -> bool {
        match self {
            Self::Any => true,
            Self::Only(only) => only == exposure,
        }
    }
}

impl Annotation {
    /// The whole key, with `{port}` where a port number goes.
    #[must_use]
    pub fn full_key(&self) -> String {
        full(self.key)
    }

    /// Whether it counts with this SKU.
    #[must_use]
    pub fn works_on(&self, sku: BalancerSku) -> bool {
        self.skus.contains(&sku)
    }

    /// Where it counts, in words.
    #[must_use]
    pub fn scope(&self) -> String {
        let reach = match self.reach {
            Reach::Any => "",
            Reach::Only(Exposure::Public) => "public ",
            Reach::Only(Exposure::Internal) => "internal ",
        };
        let skus: Vec<&str> = self.skus.iter().map(|sku| sku_name(*sku)).collect();
        if skus.is_empty() {
            return "none".to_owned();
        }
        format!("{reach}{} load balancers", skus.join(", "))
    }
}

pub(super) fn sku_name(sku: BalancerSku) -> &'static str {
    match sku {
        BalancerSku::Basic => "basic",
        BalancerSku::Standard => "standard",
        BalancerSku::Service => "container",
    }
}

/// A key found in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// The entry.
    pub annotation: &'static Annotation,
    /// The port in the key, for keys that have one.
    pub port: Option<u16>,
}

/// Looks up a key without [`PREFIX`].
#[must_use]
pub fn find(key: &str) -> Option<Match> {
    let (pattern, port) = match split_port(key) {
        Some((port, rest)) => (format!("port_{PORT}_{rest}"), Some(port)),
        None => (key.to_owned(), None),
    };
    let annotation = TABLE.iter().find(|a| {
        a.key == pattern
            || (a.key == CONFIGURATIONS && a.key.eq_ignore_ascii_case(&pattern) && port.is_none())
    })?;
    Some(Match { annotation, port })
}

/// The one key whose letter case has never mattered.
pub const CONFIGURATIONS: &str = "azure-load-balancer-configurations";

/// Splits `port_80_rest` into 80 and `rest`.
fn split_port(key: &str) -> Option<(u16, &str)> {
    let (text, rest) = key.strip_prefix("port_")?.split_once('_')?;
    // Settings are read by the number as it is printed: not `port_080_`.
    let port: u16 = text.parse().ok()?;
    (port.to_string() == text).then_some((port, rest))
}

/// Keys of probes as some documents of AKS write them.
const PROBES: &str = "load-balancer-health-probe-";

/// Whether a key without [`PREFIX`] looks like one of ours, right or wrong.
#[must_use]
pub fn is_ours(key: &str) -> bool {
    ["azure-", "port_", PROBES, OWN].iter().any(|start| key.starts_with(start))
}

/// Most bytes of a key that suggestions are made for: the API server takes 63 behind the prefix.
const LONGEST_KEY: usize = 63;

/// The key that was probably meant, for one that is not in the table; without [`PREFIX`].
#[must_use]
pub fn suggestion(key: &str) -> Option<String> {
    if key.len() > LONGEST_KEY {
        return None;
    }
    if let Some(rest) = key.strip_prefix(PROBES) {
        return suggestion(&format!("azure-{PROBES}{rest}"));
    }
    let port = key.strip_prefix("port_").and_then(|rest| rest.split('_').next());
    // Where the key has no number, the suggestion has none.
    if let Some(port) = port.filter(|port| *port != PORT && port.parse::<u16>().is_err()) {
        return suggestion(&key.replacen(port, PORT, 1));
    }
    let room = 2 + key.len() / 12;
    TABLE
        .iter()
        .map(|a| match port {
            Some(port) => a.key.replace(PORT, port),
            None => a.key.to_owned(),
        })
        .map(|candidate| (distance(&key.to_lowercase(), &candidate), candidate))
        .filter(|(far, _)| *far <= room)
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn keys_are_unique_and_found_again() {
        let keys: BTreeSet<&str> = TABLE.iter().map(|a| a.key).collect();
        assert_eq!(keys.len(), TABLE.len());
        for entry in TABLE {
            let found = find(&entry.key.replace(PORT, "80")).expect(entry.key);
            assert_eq!(found.annotation.key, entry.key);
            assert_eq!(found.port.is_some(), entry.key.contains(PORT), "{}", entry.key);
        }
        assert_eq!(find("port_x_no_lb_rule"), None);
        assert_eq!(find("port_99999_no_lb_rule"), None);
        assert!(find("azure-Load-balancer-Configurations").is_some());
    }

    #[test]
    fn a_slip_of_the_pen_is_recognised() {
        let meant = |key| suggestion(key).unwrap_or_default();
        assert_eq!(meant("azure-load-balancer-intern"), "azure-load-balancer-internal");
        assert_eq!(meant("azure-dns-label-names"), "azure-dns-label-name");
        assert_eq!(meant("port_80_health-probe-interval"), "port_80_health-probe_interval");
        assert_eq!(meant("azure-Pls-Create"), "azure-pls-create");
        assert_eq!(
            meant("load-balancer-health-probe-interval"),
            "azure-load-balancer-health-probe-interval"
        );
        // What is suggested is never what was written.
        assert_eq!(meant("port_http_no_lb_rule"), "port_{port}_no_lb_rule");
        assert_eq!(suggestion("azure-something-else"), None);
    }

    #[test]
    fn the_reference_names_every_key() {
        let text = reference();
        for entry in TABLE {
            assert!(text.contains(&format!("`{}`", entry.key)), "{}", entry.key);
        }
        assert!(text.lines().all(|line| !line.contains("  |")), "cells are not padded");
    }
}
