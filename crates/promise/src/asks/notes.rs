//! What is noted of a Service that is served: the owner learns of a value that has no effect
//! (docs/operating.md, "Findings"). Not every note is stated here.

use super::public_ip::{is_reserved, pair};
use super::words::Words;
use super::{Asks, Family, Protocol};
use crate::estate::{items, same, text};
use crate::site::{Layout, Site};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// A note: its rule, and the annotation or the field that it is about.
pub(crate) type Note = (&'static str, String);

/// Rules of which every note is stated here.
pub(crate) const WHOLE: [&str; 15] = [
    "AnnotationIgnored",
    "AutoApprovalNotVisible",
    "ConfigurationsIgnored",
    "DenyAllWithoutRanges",
    "EmptyServiceTags",
    "MalformedTag",
    "ModeIgnored",
    "OverriddenTag",
    "PrivateLinkNotCreated",
    "ReservedTag",
    "SharedRulesAlwaysOn",
    "SourceRangesLimitTags",
    "SourceRangesOfOtherFamily",
    "UnknownAnnotation",
    "UnknownConfigurationName",
];

/// So many notes of one rule are in the status one by one; of more, the status has their number.
const LISTED: usize = 5;

const MODE: &str = "azure-load-balancer-mode";
const CONFIGURATIONS: &str = "azure-load-balancer-configurations";
const DENY: &str = "azure-deny-all-except-load-balancer-source-ranges";
const INTERNAL: &str = "azure-load-balancer-internal";
const TAGS: &str = "azure-pip-tags";
const IP_TAGS: &str = "azure-pip-ip-tags";
const SERVICE_TAGS: &str = "azure-allowed-service-tags";
const SHARED_RULES: &str = "azure-shared-securityrule";
const PROTOCOL: &str = "azure-load-balancer-health-probe-protocol";
const DISCONNECT: &str = "ballast.dev/disconnect-private-endpoints";

/// How Ballast's own keys begin, and all of them.
const OWN: &str = "ballast.dev/";
const OWN_KEYS: [&str; 7] = [
    DISCONNECT,
    "ballast.dev/confirm",
    "ballast.dev/confirmed",
    "ballast.dev/deletion-protection",
    "ballast.dev/pause",
    "ballast.dev/retry-at",
    "ballast.dev/share-with-namespaces",
];

/// How keys of load balancers begin: others below the same prefix are other controllers'.
const OURS: [&str; 3] = ["azure-", "port_", "load-balancer-health-probe-"];

/// Keys that are `true` in any letter case.
const FLAGS: [&str; 8] = [
    "azure-load-balancer-enable-high-availability-ports",
    "azure-disable-load-balancer-floating-ip",
    "azure-load-balancer-disable-tcp-reset",
    "port_{port}_no_lb_rule",
    "port_{port}_no_probe_rule",
    DENY,
    "azure-disable-load-balancer-nsg-rule",
    SHARED_RULES,
];
/// The same with blanks around the value.
const LOOSE_FLAGS: [&str; 2] = ["azure-pls-create", "azure-pls-proxy-protocol"];

/// Keys that count on load balancers of one side: on internal ones, or on public ones.
const INSIDE: [&str; 2] =
    ["azure-load-balancer-internal-subnet", "azure-load-balancer-enable-high-availability-ports"];
const OUTSIDE: [&str; 8] = [
    "azure-pip-name",
    "azure-pip-name-ipv6",
    "azure-pip-prefix-id",
    "azure-pip-prefix-id-ipv6",
    "azure-load-balancer-resource-group",
    "azure-dns-label-name",
    TAGS,
    IP_TAGS,
];
/// Keys that count on Standard load balancers.
const STANDARD: [&str; 4] = [
    "azure-load-balancer-enable-high-availability-ports",
    "azure-load-balancer-disable-tcp-reset",
    "azure-pip-prefix-id",
    "azure-pip-prefix-id-ipv6",
];

/// Keys of Private Link Services beside `azure-pls-create`, in the order in which the first one is
/// told that has no effect without it.
const LINK: [&str; 9] = [
    "azure-pls-name",
    "azure-pls-ip-configuration-subnet",
    "azure-pls-ip-configuration-ip-address-count",
    "azure-pls-ip-configuration-ip-address",
    "azure-pls-fqdns",
    "azure-pls-proxy-protocol",
    "azure-pls-visibility",
    "azure-pls-auto-approval",
    "azure-pls-resource-group",
];

/// Keys of probes for all ports.
const PROBES: [&str; 5] = [
    "azure-load-balancer-health-probe-interval",
    "azure-load-balancer-health-probe-num-of-probe",
    "load-balancer-health-probe-num-of-probe",
    "azure-load-balancer-health-probe-request-path",
    PROTOCOL,
];
/// What keys say of the probe of one port.
const OF_PORT: [&str; 5] = ["port", "interval", "num-of-probe", "protocol", "request-path"];

/// Keys that are none of the above.
const OTHERS: [&str; 11] = [
    INTERNAL,
    MODE,
    CONFIGURATIONS,
    "azure-load-balancer-ipv4",
    "azure-load-balancer-ipv6",
    "azure-additional-public-ips",
    "azure-load-balancer-tcp-idle-timeout",
    SERVICE_TAGS,
    "azure-allowed-ip-ranges",
    "load-balancer-source-ranges",
    "azure-pls-create",
];

/// The notes of a Service.
struct Notes<'a> {
    words: Words<'a>,
    asks: &'a Asks,
    due: Vec<Note>,
}

/// What has to be told of a Service on load balancers over nodes.
pub(crate) fn due(service: &Value, site: &Site, asks: &Asks) -> Vec<Note> {
    let mut notes = Notes { words: Words { service, site }, asks, due: Vec::new() };
    notes.of_keys();
    notes.of_placement();
    notes.of_sources();
    notes.of_addresses();
    if !asks.internal {
        notes.of_public_ips();
        notes.of_tags();
    }
    notes.of_links();
    notes.of_probes();
    let Notes { due, .. } = notes;
    let told = |rule: &str| due.iter().filter(|(of, _)| *of == rule).count() <= LISTED;
    // Which of many are in the status is not promised.
    let of = |rule: &str, key: &str| if told(rule) { key.to_owned() } else { String::new() };
    due.iter().map(|(rule, key)| (*rule, of(rule, key))).collect()
}

/// A key with `{port}` in place of the number of a port, and that number.
fn pattern(key: &str) -> (String, Option<&str>) {
    let split = key.strip_prefix("port_").and_then(|rest| rest.split_once('_'));
    // A number is written as it is printed.
    let number = |text: &str| text.parse::<u16>().is_ok_and(|number| number.to_string() == text);
    match split {
        Some((port, rest)) if number(port) => (format!("port_{{port}}_{rest}"), Some(port)),
        _ => (key.to_owned(), None),
    }
}

fn is_known(pattern: &str) -> bool {
    let of_port = pattern.strip_prefix("port_{port}_health-probe_");
    let all: [&[&str]; 7] = [&FLAGS, &LOOSE_FLAGS, &INSIDE, &OUTSIDE, &LINK, &PROBES, &OTHERS];
    all.iter().any(|keys| keys.contains(&pattern))
        || of_port.is_some_and(|rest| OF_PORT.contains(&rest))
        || pattern.eq_ignore_ascii_case(CONFIGURATIONS)
}

fn is_probe_protocol(value: &str) -> bool {
    ["tcp", "http", "https"].iter().any(|word| same(word, value.trim()))
}

impl Notes<'_> {
    fn note(&mut self, holds: bool, rule: &'static str, key: &str) {
        self.due.extend(holds.then(|| (rule, key.to_owned())));
    }

    /// Whether a flag is on; `None` where a key is none.
    fn flag(&self, pattern: &str, key: &str) -> Option<bool> {
        match pattern {
            INTERNAL => Some(self.words.strict_flag(key)),
            _ if LOOSE_FLAGS.contains(&pattern) => Some(self.words.loose_flag(key)),
            _ => FLAGS.contains(&pattern).then(|| self.words.flag(key)),
        }
    }

    /// Unknown keys, flags that are neither true nor false, and keys that do not count here.
    fn of_keys(&mut self) {
        let service = self.words.service;
        let health = service["spec"]["healthCheckNodePort"].as_u64();
        let ports = items(&service["spec"]["ports"]).filter_map(|port| port["port"].as_u64());
        let ports: BTreeSet<String> = ports.chain(health).map(|port| port.to_string()).collect();
        let all: Vec<(&str, &str)> = self.words.annotations().collect();
        for (key, value) in all {
            let (pattern, port) = pattern(key);
            let pattern = pattern.as_str();
            if !is_known(pattern) {
                let ours = OURS.iter().any(|start| key.starts_with(start));
                self.note(ours, "UnknownAnnotation", key);
                continue;
            }
            let flag = self.flag(pattern, key);
            // What is no `true` and does not say `false` either counts as false.
            let silent = ["", "false"].iter().any(|word| same(word, value.trim()));
            self.note(flag == Some(false) && !silent, "InvalidBoolean", key);
            let strange = port.is_some_and(|port| !ports.contains(port));
            self.note(strange, "UnknownPort", key);
            let asked = flag.unwrap_or(!value.trim().is_empty());
            let side = if self.asks.internal { &OUTSIDE[..] } else { &INSIDE[..] };
            let basic = !self.words.is_standard() && STANDARD.contains(&pattern);
            let idle = side.contains(&pattern) || basic;
            self.note(asked && idle, "AnnotationIgnored", key);
        }
        let annotations = &service["metadata"]["annotations"];
        for key in annotations.as_object().into_iter().flatten().map(|(key, _)| key) {
            let unknown = key.starts_with(OWN) && !OWN_KEYS.contains(&key.as_str());
            self.note(unknown, "UnknownAnnotation", key);
        }
        let idle = same(text(&annotations[DISCONNECT]), "true") && !self.words.is_standard();
        self.note(idle, "AnnotationIgnored", DISCONNECT);
        let says = self.words.whole(SHARED_RULES).is_some();
        self.note(says, "SharedRulesAlwaysOn", SHARED_RULES);
    }

    fn of_placement(&mut self) {
        let per_set = matches!(self.words.site.layout, Layout::PerSet { .. });
        let mode = self.words.text(MODE).is_some();
        self.note(!per_set && mode, "ModeIgnored", MODE);
        let named = self.words.in_any_case(CONFIGURATIONS);
        let Layout::Several(elements) = &self.words.site.layout else {
            let says = named.is_some_and(|list| !list.is_empty());
            self.note(says, "ConfigurationsIgnored", CONFIGURATIONS);
            return;
        };
        let mut names = named.into_iter().flat_map(|list| list.split(',')).map(str::trim);
        let is_known = |name: &str| elements.iter().any(|element| same(&element.name, name));
        let strange = names.any(|name| !name.is_empty() && !is_known(name));
        self.note(strange, "UnknownConfigurationName", CONFIGURATIONS);
    }

    fn of_sources(&mut self) {
        let access = &self.asks.access;
        let none = access.ranges.is_empty();
        let (tagged, families) = (!access.tags.is_empty(), &self.asks.families);
        let other = |range: &ipnet::IpNet| !families.contains(&Family::of(&range.addr()));
        let others = !none && !tagged && access.ranges.iter().all(other);
        let deny = self.words.flag(DENY);
        self.note(none && deny, "DenyAllWithoutRanges", DENY);
        let annotated = ["azure-allowed-ip-ranges", "load-balancer-source-ranges"];
        let said = annotated.into_iter().find(|key| !self.words.list(key).is_empty());
        let said = said.unwrap_or("spec.loadBalancerSourceRanges");
        self.note(others, "SourceRangesOfOtherFamily", said);
        // kube-proxy reads the field and the annotation of Kubernetes, and drops all other sources.
        let field = items(&self.words.service["spec"]["loadBalancerSourceRanges"]).next().is_some();
        let dropped = field || !self.words.list("load-balancer-source-ranges").is_empty();
        self.note(tagged && dropped, "SourceRangesLimitTags", SERVICE_TAGS);
        let listed = self.words.whole(SERVICE_TAGS).unwrap_or("").trim();
        let gap = tagged && listed.split(',').any(|entry| entry.trim().is_empty());
        self.note(gap, "EmptyServiceTags", SERVICE_TAGS);
    }

    /// Addresses of families that the Service does not have.
    fn of_addresses(&mut self) {
        let families = &self.asks.families;
        let of =
            [(Family::V4, "azure-load-balancer-ipv4"), (Family::V6, "azure-load-balancer-ipv6")];
        let annotated = of.into_iter().filter(|(_, key)| self.words.text(key).is_some());
        let annotated: Vec<(Family, &str)> = annotated.collect();
        let idle: Vec<&str> =
            annotated.iter().filter(|(f, _)| !families.contains(f)).map(|(_, key)| *key).collect();
        let free = families.iter().any(|family| annotated.iter().all(|(of, _)| of != family));
        let field = text(&self.words.service["spec"]["loadBalancerIP"]).trim();
        let field = field.parse::<IpAddr>().ok().filter(|_| free);
        let strange =
            field.is_some_and(|address| !families.contains(&Family::of(&address.to_canonical())));
        idle.into_iter().for_each(|key| self.note(true, "UnusedPinnedAddress", key));
        self.note(strange, "UnusedPinnedAddress", "spec.loadBalancerIP");
    }

    /// Names and prefixes of public IPs that another key goes before.
    fn of_public_ips(&mut self) {
        let (asks, standard) = (self.asks, self.words.is_standard());
        for plain in ["azure-pip-name", "azure-pip-prefix-id"] {
            let six = format!("{plain}-ipv6");
            let idle = match asks.families[..] {
                [Family::V4] => &*six,
                [Family::V6] if self.words.text(&six).is_some() => plain,
                _ => continue,
            };
            let counts = standard || plain == "azure-pip-name";
            let says = self.words.text(idle).is_some();
            self.note(counts && says, "AnnotationIgnored", idle);
        }
        for family in &asks.families {
            let named = asks.public_ip.name.contains_key(family);
            let prefixed = asks.public_ip.prefix.contains_key(family);
            let six = "azure-pip-prefix-id-ipv6";
            let of_six = *family == Family::V6 && self.words.text(six).is_some();
            let key = if of_six { six } else { "azure-pip-prefix-id" };
            self.note(named && prefixed && standard, "AnnotationIgnored", key);
        }
    }

    fn of_tags(&mut self) {
        for key in [TAGS, IP_TAGS] {
            let malformed = self.words.list(key).into_iter().any(|entry| pair(entry).is_none());
            self.note(malformed, "MalformedTag", key);
        }
        // Keys of tags have no letter case; the last value counts.
        let pairs = self.words.list(TAGS).into_iter().filter_map(pair);
        let tags: BTreeMap<String, &str> =
            pairs.map(|(name, value)| (name.to_lowercase(), value)).collect();
        let of_config = &self.words.site.tags;
        let differs = |(name, value): (&String, &&str)| {
            let set = of_config.iter().find(|(known, _)| same(known, name));
            !is_reserved(name) && set.is_some_and(|(_, set)| set != value)
        };
        let overridden = tags.iter().any(differs);
        self.note(tags.keys().any(|name| is_reserved(name)), "ReservedTag", TAGS);
        self.note(overridden, "OverriddenTag", TAGS);
    }

    fn of_links(&mut self) {
        let Some(link) = &self.asks.link else {
            let idle = LINK.into_iter().find(|key| self.words.text(key).is_some());
            self.note(idle.is_some(), "PrivateLinkNotCreated", idle.unwrap_or_default());
            return;
        };
        let sees = |id: &String| link.visibility.iter().any(|seen| seen == "*" || same(seen, id));
        let blind = !link.auto_approval.iter().all(sees);
        self.note(blind, "AutoApprovalNotVisible", "azure-pls-auto-approval");
    }

    /// Settings of probes where another probe is asked instead, and protocols that there are not.
    fn of_probes(&mut self) {
        let (asks, site) = (self.asks, self.words.site);
        let of_port = |number: u64, what: &str| format!("port_{number}_health-probe_{what}");
        if !asks.local && site.shared_probe.is_some() {
            let ports = asks.ports.iter();
            let of_ports = ports.flat_map(|port| OF_PORT.map(|what| of_port(port.number, what)));
            let all: Vec<String> = PROBES.map(str::to_owned).into_iter().chain(of_ports).collect();
            for key in all {
                let says = self.words.whole(&key).is_some();
                self.note(says, "ProbeSettingIgnored", &key);
            }
            return;
        }
        if asks.local && asks.health_port > 0 && (!asks.proxied || site.agent.is_some()) {
            for port in asks.ports.iter().filter(|port| asks.ha_ports || !port.own_probe_port) {
                for what in OF_PORT {
                    // How often the health check node port is asked a port may say for its rule.
                    let timing = matches!(what, "interval" | "num-of-probe");
                    let key = of_port(port.number, what);
                    let says = self.words.whole(&key).is_some();
                    self.note(says && (asks.ha_ports || !timing), "ProbeSettingIgnored", &key);
                }
            }
            return;
        }
        let probed = |port: &&super::Port| {
            port.protocol == Protocol::Tcp && port.has_rule && !port.no_probe && !asks.ha_ports
        };
        for port in asks.ports.iter().filter(probed) {
            let key = of_port(port.number, "protocol");
            let app = items(&self.words.service["spec"]["ports"]).any(|entry| {
                let same_port = entry["port"].as_u64() == Some(port.number);
                let tcp = ["", "TCP"].contains(&text(&entry["protocol"]));
                same_port && tcp && !text(&entry["appProtocol"]).is_empty()
            });
            let probe_of_node = port.node_port == 0 && !port.own_probe_port;
            // An empty value is there, too, and no protocol.
            let (said, counts) = match self.words.whole(&key) {
                Some(said) => (Some(said), &*key),
                None => (self.words.text(PROTOCOL).filter(|_| !app), PROTOCOL),
            };
            let odd = said.is_some_and(|said| !is_probe_protocol(said));
            self.note(odd && !probe_of_node, "InvalidProbeProtocol", counts);
        }
    }
}
