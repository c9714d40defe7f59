//! Values of annotations, drawn from the annotation reference's own table: a new row joins by
//! itself, with a value made from what the row says of its values, until this file knows better.

use crate::random::Random;
use crate::scene::{self, SUBSCRIPTION};
use plan::ask::annotation::{Annotation, Kind, OWN, TABLE, Truth};

/// A value that no annotation takes which refuses anything.
pub const WRONG: &str = "<wrong>";

/// Keys of the table that ask for something of its own when they are drawn.
pub(super) mod key {
    pub const INTERNAL: &str = "azure-load-balancer-internal";
    pub const MODE: &str = "azure-load-balancer-mode";
    pub const SUBNET: &str = "azure-load-balancer-internal-subnet";
    pub const PLACED_ON: &str = "azure-load-balancer-configurations";
    pub const IPV4: &str = "azure-load-balancer-ipv4";
    pub const IPV6: &str = "azure-load-balancer-ipv6";
    pub const TIMEOUT: &str = "azure-load-balancer-tcp-idle-timeout";
    pub const ALL_PORTS: &str = "azure-load-balancer-enable-high-availability-ports";
    pub const NO_FLOATING_IP: &str = "azure-disable-load-balancer-floating-ip";
    pub const NO_RULE: &str = "port_{port}_no_lb_rule";
    pub const RANGES: &str = "azure-allowed-ip-ranges";
    pub const SOURCES: &str = "load-balancer-source-ranges";
    pub const TAGS: &str = "azure-allowed-service-tags";
    pub const PIP: &str = "azure-pip-name";
    pub const PIP_IPV6: &str = "azure-pip-name-ipv6";
    pub const PREFIX: &str = "azure-pip-prefix-id";
    pub const GROUP: &str = "azure-load-balancer-resource-group";
    pub const LABEL: &str = "azure-dns-label-name";
    pub const PROBED: &str = "port_{port}_health-probe_port";
    pub const LINK: &str = "azure-pls-create";
    pub const LINK_NAME: &str = "azure-pls-name";
    pub const LINK_SUBNET: &str = "azure-pls-ip-configuration-subnet";
    pub const LINK_ADDRESS: &str = "azure-pls-ip-configuration-ip-address";
}

/// Stands for the name of the Service's first port.
pub const NAME: &str = "{name}";

/// The resource group of public IPs beside the cluster's own.
pub const OTHER_GROUP: &str = "pip-rg";

fn all(values: &[&str]) -> Vec<String> {
    values.iter().map(|value| (*value).to_owned()).collect()
}

/// Valid values of an annotation for the owner of this number, as far as the estate goes. What
/// only one Service can have differs by owner.
#[must_use]
pub fn values(row: &Annotation, owner: u64) -> Vec<String> {
    if let Kind::Flag(truth) = row.kind {
        return match truth {
            Truth::Exact => all(&["true", "false"]),
            Truth::AnyCase => all(&["true", "True", "false"]),
            Truth::Trimmed => all(&["true", " TRUE ", "false"]),
        };
    }
    match row.key {
        key::SUBNET | key::LINK_SUBNET => all(&["nodes", "apps"]),
        key::MODE => all(&["__auto__", "vmss", "auto"]),
        key::PLACED_ON => all(&["kubernetes", "lb2", "LB2,kubernetes"]),
        key::IPV4 => vec![
            "20.50.0.10".to_owned(),
            "20.50.0.14".to_owned(),
            format!("10.224.9.{}", 9 + owner),
            format!("10.225.0.{}", 70 + owner),
        ],
        key::IPV6 => vec![
            "2603:1030::10".to_owned(),
            format!("fd00::9:{}", 10 + owner),
            format!("fd00:0:0:1::9:{}", 10 + owner),
        ],
        "azure-additional-public-ips" => {
            vec![
                format!("20.9.{owner}.1"),
                format!("20.9.{owner}.2, 20.9.{owner}.3"),
                format!("20.9.{owner}.4,2603:1030:9:{owner}::1"),
            ]
        }
        key::TIMEOUT => all(&["4", "15", "30", "100"]),
        "azure-load-balancer-health-probe-protocol" | "port_{port}_health-probe_protocol" => {
            all(&["tcp", "Http", "https"])
        }
        "azure-load-balancer-health-probe-interval" | "port_{port}_health-probe_interval" => {
            all(&["5", "10", "20"])
        }
        "azure-load-balancer-health-probe-num-of-probe"
        | "load-balancer-health-probe-num-of-probe"
        | "port_{port}_health-probe_num-of-probe" => all(&["2", "3", "5"]),
        "azure-load-balancer-health-probe-request-path"
        | "port_{port}_health-probe_request-path" => all(&["/", "/ready", "/live"]),
        key::PROBED => all(&[NAME, "10256"]),
        key::TAGS => all(&["Storage", "AzureCloud,Storage"]),
        key::RANGES | key::SOURCES => {
            all(&["10.0.0.0/8", "203.0.113.0/24,198.51.100.0/24", "2001:db8::/32", "0.0.0.0/0"])
        }
        key::PIP => all(&["byo-pip", "byo-pip3", "byo-pip3", "byo-pip4"]),
        key::PIP_IPV6 => all(&["byo-pip6"]),
        key::PREFIX => vec![scene::network("publicIPPrefixes/theirs-prefix")],
        "azure-pip-prefix-id-ipv6" => vec![scene::network("publicIPPrefixes/theirs-prefix6")],
        key::GROUP => all(&[OTHER_GROUP, "RG"]),
        key::LABEL => vec![format!("wish-{owner}"), format!("wish-{owner}-too"), String::new()],
        "azure-pip-tags" => all(&["team=net", "team=web,owner=us,cost=9"]),
        "azure-pip-ip-tags" => all(&["RoutingPreference=Internet", "FirstPartyUsage=/Web"]),
        key::LINK_NAME => vec![format!("link-of-wish-{owner}")],
        "azure-pls-resource-group" => all(&["rg", "RG"]),
        "azure-pls-ip-configuration-ip-address-count" => all(&["1", "2", "3"]),
        key::LINK_ADDRESS => vec![format!("10.225.0.{}", 50 + owner)],
        "azure-pls-fqdns" => all(&["a.example", "a.example b.example"]),
        "azure-pls-visibility" => vec!["*".to_owned(), SUBSCRIPTION.to_owned()],
        "azure-pls-auto-approval" => all(&[SUBSCRIPTION]),
        _ => vec![by_words(row.values, owner)],
    }
}

/// A value for a row that is not listed above, from what the reference says of its values.
fn by_words(words: &str, owner: u64) -> String {
    if let Some(example) = words.split('`').nth(1) {
        return example.to_owned();
    }
    let number = words.split(|c: char| !c.is_ascii_digit()).find(|digits| !digits.is_empty());
    if let Some(number) = number {
        return number.to_owned();
    }
    let kinds = [
        ("range", "203.0.113.0/24".to_owned()),
        ("address", format!("20.9.{owner}.4")),
        ("subscription", SUBSCRIPTION.to_owned()),
        ("=", "team=net".to_owned()),
        ("group", "rg".to_owned()),
        ("number", "5".to_owned()),
    ];
    let found = kinds.into_iter().find(|(word, _)| words.contains(word));
    found.map_or_else(|| format!("wish-{owner}"), |(_, value)| value)
}

/// A row of the table and a valid value of it.
pub(super) fn draw(owner: u64, random: &mut Random) -> (&'static str, String) {
    // Whether other namespaces may share is drawn where they try (`hostile`).
    let rows: Vec<_> = TABLE.iter().filter(|row| !row.key.starts_with(OWN)).collect();
    let row = random.pick(&rows);
    (row.key, random.pick(&values(row, owner)).clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_nobody_knows_gets_a_value_from_its_words() {
        assert_eq!(by_words("minutes, 4 to 100", 0), "4");
        assert_eq!(by_words("path, from `/`", 0), "/");
        assert_eq!(by_words("ranges, separated by commas", 0), "203.0.113.0/24");
        assert_eq!(by_words("IPv4 addresses", 7), "4");
        assert_eq!(by_words("addresses", 7), "20.9.7.4");
        assert_eq!(by_words("name", 7), "wish-7");
    }

    #[test]
    fn what_only_one_service_can_have_differs_by_owner() {
        let of = |key: &str, owner| {
            let row = TABLE.iter().find(|row| row.key == key).expect("it is in the table");
            values(row, owner)
        };
        for key in ["azure-additional-public-ips", key::LINK_NAME, key::LINK_ADDRESS] {
            assert!(of(key, 1).iter().all(|value| !of(key, 2).contains(value)), "{key}");
        }
    }
}
