//! Names of everything a Service has in Azure. They decide what is whose, so they never change.

use crate::ask::{EndpointScope, Intent, ProbeIntent, ProbeName, RuleKind, SHARED_PROBE};
use md5::{Digest, Md5};
use model::azure::SecurityRule;
use model::policy::Layout;
use model::{Exposure, Family, Policy, Protocol, ResourceId, ServiceName};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Azure allows 80 characters; five are kept for a family's suffix.
const LENGTH: usize = 75;
/// Length of a base name.
const BASE: usize = 32;
/// Suffix of internal load balancers.
const INTERNAL: &str = "-internal";
/// What the name of a probe beside that on the health check node port has in place of a protocol.
const BESIDE: &str = "port";
/// Suffix of IPv6 parts.
const IPV6: &str = "-IPv6";

/// The load balancer of the single layout.
#[must_use]
pub fn balancer(policy: &Policy, exposure: Exposure) -> String {
    let base = policy.balancer_name.as_ref().unwrap_or(&policy.cluster);
    balancer_of(base, exposure)
}

/// The load balancer of a configuration or node set.
#[must_use]
pub fn balancer_of(base: &str, exposure: Exposure) -> String {
    match exposure {
        Exposure::Public => base.to_owned(),
        Exposure::Internal => format!("{base}{INTERNAL}"),
    }
}

/// The load balancers of a layout over nodes, but for those of node sets.
pub fn balancers(policy: &Policy) -> impl Iterator<Item = String> {
    let bases: Vec<&Arc<str>> = match &policy.layout {
        Layout::Several(configs) => configs.iter().map(|config| &config.name).collect(),
        Layout::Single | Layout::PerNodeSet { .. } | Layout::PerService => {
            vec![policy.balancer_name.as_ref().unwrap_or(&policy.cluster)]
        }
    };
    bases.into_iter().flat_map(|base| Exposure::ALL.map(|exposure| balancer_of(base, exposure)))
}

/// Whether two names mean one thing: letter case does not count, as it does not in Azure.
pub(crate) fn is_one(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// A name as a key of a map: two that mean one thing are one key.
#[must_use]
pub fn folded(name: &str) -> String {
    name.to_lowercase()
}

/// Whether a load balancer has a name that the layout gives one, but for those of node sets.
pub(crate) fn is_balancer(policy: &Policy, found: &str) -> bool {
    balancers(policy).any(|name| is_one(&name, found))
}

/// The configuration or node set that a load balancer is called after; `None` where it is not of
/// this exposure.
#[must_use]
pub fn set_of(balancer: &str, exposure: Exposure) -> Option<&str> {
    let (set, suffix) = balancer.split_at_checked(balancer.len().saturating_sub(INTERNAL.len()))?;
    let is_internal = suffix.eq_ignore_ascii_case(INTERNAL);
    match exposure {
        Exposure::Public => (!is_internal).then_some(balancer),
        Exposure::Internal => is_internal.then_some(set),
    }
}

/// The exposure that the name of a load balancer tells.
pub(crate) fn exposure_of(balancer: &ResourceId) -> Exposure {
    match set_of(balancer.name(), Exposure::Internal) {
        Some(_) => Exposure::Internal,
        None => Exposure::Public,
    }
}

/// The load balancer of the other exposure that the same NICs are behind, whatever the letters in
/// which Azure answers.
pub(crate) fn counterpart(balancer: &ResourceId) -> ResourceId {
    let text = balancer.as_str();
    let cut = text.split_at_checked(text.len().saturating_sub(INTERNAL.len()));
    match cut.filter(|(_, suffix)| is_one(suffix, INTERNAL)) {
        Some((base, _)) => ResourceId::new(base),
        None => ResourceId::new(format!("{text}{INTERNAL}")),
    }
}

/// The family that the name of a pool of ours tells, in any letter case: pools that Services have
/// to themselves end in lower case.
#[must_use]
pub fn family_of_pool(pool: &str) -> Family {
    let end = pool.len().checked_sub(IPV6.len()).and_then(|at| pool.get(at..));
    if end.is_some_and(|end| is_one(end, IPV6)) { Family::V6 } else { Family::V4 }
}

/// The cluster's pool of a family; IPv6 has its suffix on single-stack Services, too.
#[must_use]
pub fn pool(cluster: &str, family: Family) -> String {
    match family {
        Family::V4 => cluster.to_owned(),
        Family::V6 => format!("{cluster}{IPV6}"),
    }
}

/// Whether a pool is the cluster's, of either family.
#[must_use]
pub fn is_pool(cluster: &str, name: &str) -> bool {
    let of_v6 = || {
        let (base, suffix) = name.split_at_checked(name.len().checked_sub(IPV6.len())?)?;
        (suffix.eq_ignore_ascii_case(IPV6) && base.eq_ignore_ascii_case(cluster)).then_some(())
    };
    name.eq_ignore_ascii_case(cluster) || of_v6().is_some()
}

/// The family of a pool, where it is the cluster's.
pub(crate) fn pool_family(cluster: &str, name: &str) -> Option<Family> {
    Family::ALL.into_iter().find(|family| is_one(&pool(cluster, *family), name))
}

/// The pool that a switch of the cluster's pool goes over; no Service's own pool has an underscore
/// in it.
#[must_use]
pub fn switch_pool(cluster: &str, family: Family) -> String {
    pool(&format!("{cluster}_switch"), family)
}

/// Whether a pool is the cluster's, or one that a switch of its kind goes over.
#[must_use]
pub fn is_common_pool(cluster: &str, name: &str) -> bool {
    is_pool(cluster, name)
        || Family::ALL.iter().any(|f| switch_pool(cluster, *f).eq_ignore_ascii_case(name))
}

/// The pool that a local Service has to itself where there are several load balancers.
#[must_use]
pub fn local_pool(service: &ServiceName, family: Family) -> String {
    let name = format!("{}-{}", service.namespace, service.name).to_lowercase();
    match family {
        Family::V4 => name,
        Family::V6 => format!("{name}-ipv6"),
    }
}

/// Whether a pool has the name of one that a Service has to itself.
pub(crate) fn is_local_pool(service: &ServiceName, name: &str) -> bool {
    Family::ALL.iter().any(|family| is_one(&local_pool(service, *family), name))
}

/// The suffix of a Service's IPv6 parts: only dual-stack Services need one.
fn suffix(intent: &Intent, family: Family) -> &'static str {
    if intent.is_dual_stack() && family == Family::V6 { IPV6 } else { "" }
}

/// Cuts to a length; a last character that Azure does not allow there becomes `_`.
fn cut(mut name: String, length: usize) -> String {
    if name.len() > length {
        let end = (0..=length).rev().find(|at| name.is_char_boundary(*at)).unwrap_or(0);
        name.truncate(end);
        if !name.ends_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            name.pop();
            name.push('_');
        }
    }
    name
}

/// A Service's frontend.
#[must_use]
pub fn frontend(intent: &Intent, family: Family) -> String {
    let name = match &intent.subnet {
        Some(subnet) => cut(joined(&[&*intent.base, "-", subnet]), LENGTH),
        None => joined(&[&*intent.base]),
    };
    name + suffix(intent, family)
}

/// The family for which a Service has a frontend of this name.
pub(crate) fn frontend_family(intent: &Intent, name: &str) -> Option<Family> {
    intent.families.iter().copied().find(|family| is_one(&frontend(intent, *family), name))
}

/// The pieces one after the other, with room for what a name has behind them. Names are made by the
/// thousand in every plan.
fn joined(pieces: &[&str]) -> String {
    let mut name = String::with_capacity(LENGTH + IPV6.len());
    pieces.iter().for_each(|piece| name.push_str(piece));
    name
}

fn rule_of(intent: &Intent, protocol: &str, port: u16, family: Family) -> String {
    let port = port.to_string();
    let tail = ["-", protocol, "-", port.as_str()];
    let mut name = match &intent.subnet {
        Some(subnet) => {
            let mut head = joined(&[&*intent.base, "-", subnet]);
            let room = LENGTH.saturating_sub(tail.iter().map(|piece| piece.len()).sum());
            head.truncate(head.floor_char_boundary(room));
            head
        }
        None => joined(&[&*intent.base]),
    };
    tail.iter().for_each(|piece| name.push_str(piece));
    name + suffix(intent, family)
}

/// The frontend that a rule of this name leads to where its Service has one to itself.
#[must_use]
pub fn frontend_of(rule: &str) -> Option<String> {
    let (rule, suffix) = rule.strip_suffix(IPV6).map_or((rule, ""), |rule| (rule, IPV6));
    let (rest, _port) = rule.rsplit_once('-')?;
    let (frontend, _protocol) = rest.rsplit_once('-')?;
    base_of(frontend).map(|_| format!("{frontend}{suffix}"))
}

/// A load-balancing rule.
#[must_use]
pub fn rule(intent: &Intent, kind: &RuleKind, family: Family) -> String {
    let (RuleKind::Port { protocol, port, .. } | RuleKind::AllPorts { protocol, port }) = kind;
    rule_of(intent, protocol.name(), *port, family)
}

/// The probe of a rule.
#[must_use]
pub fn probe(intent: &Intent, kind: &RuleKind, probe: &ProbeIntent, family: Family) -> String {
    match probe.name {
        ProbeName::Rule => rule(intent, kind, family),
        ProbeName::Beside => {
            let (RuleKind::Port { port, .. } | RuleKind::AllPorts { port, .. }) = kind;
            rule_of(intent, BESIDE, *port, family)
        }
        ProbeName::HealthCheck(port) => rule_of(intent, Protocol::Tcp.name(), port, family),
        ProbeName::Shared => SHARED_PROBE.to_owned(),
    }
}

/// A public IP that we make.
#[must_use]
pub fn public_ip(
    policy: &Policy,
    intent: &Intent,
    prefix: Option<&ResourceId>,
    family: Family,
) -> String {
    let mut name = joined(&[&*policy.cluster, "-", &intent.base]);
    if let Some(prefix) = prefix {
        name.push('-');
        name.push_str(prefix.name());
    }
    name.truncate(name.floor_char_boundary(LENGTH));
    name + suffix(intent, family)
}

/// Prefix of the names of all security rules that are ours.
const SECURITY_RULE: &str = "k8s-azure-lb";
/// Priorities of our security rules: allow rules from below, deny rules from above.
pub(crate) const PRIORITIES: RangeInclusive<u16> = 500..=4095;
/// The highest priority at which a security rule with our prefix is still ours.
const LAST_PRIORITY: u16 = 4096;

/// Whether a security rule is one that this kind of controller makes.
pub(crate) fn is_managed(rule: &SecurityRule) -> bool {
    let prefix = rule.name.get(..SECURITY_RULE.len());
    prefix.is_some_and(|p| p.eq_ignore_ascii_case(SECURITY_RULE))
        && (*PRIORITIES.start()..=LAST_PRIORITY).contains(&rule.priority)
}

/// An allow rule: its name is a digest of what it allows, so that equal rules are one rule.
#[must_use]
pub fn allow_rule<'a>(
    family: Family,
    protocol: &str,
    sources: impl Iterator<Item = &'a str>,
    ports: &BTreeSet<impl AsRef<str> + Ord>,
) -> String {
    let sources: Vec<&str> = sources.collect();
    let ports: Vec<&str> = ports.iter().map(AsRef::as_ref).collect();
    let text = format!("{protocol}_{}_{}", sources.join(","), ports.join(","));
    let mut name = format!("{SECURITY_RULE}_allow_{family}_");
    for byte in Md5::digest(text.as_bytes()) {
        for digit in [byte >> 4, byte & 15] {
            name.extend(char::from_digit(digit.into(), 16));
        }
    }
    name
}

/// The deny-all rule of a family.
#[must_use]
pub fn deny_rule(family: Family) -> String {
    format!("{SECURITY_RULE}_deny-all_{family}")
}

/// The rule of a family that denies a protocol on some ports: its name is a digest of both.
#[must_use]
pub fn deny_ports_rule(
    family: Family,
    protocol: &str,
    ports: &BTreeSet<impl AsRef<str> + Ord>,
) -> String {
    let allow = allow_rule(family, protocol, ["*"].into_iter(), ports);
    allow.replacen("_allow_", "_deny_", 1)
}

/// Whether a Service has a pool to itself: nodes are divided among several load balancers, and
/// the Service's endpoints may be on any of them.
pub(crate) fn has_own_pool(policy: &Policy, intent: &Intent) -> bool {
    matches!(policy.layout, Layout::Several(_)) && intent.scope == EndpointScope::Local
}

/// The pool that a Service's rules of a family lead to.
pub(crate) fn pool_of(policy: &Policy, intent: &Intent, family: Family) -> String {
    if has_own_pool(policy, intent) {
        local_pool(&intent.name, family)
    } else {
        pool(&policy.cluster, family)
    }
}

/// The name that a public and an internal load balancer have in common, folded.
pub(crate) fn common_base(balancer: &ResourceId) -> String {
    let name = balancer.name().to_lowercase();
    name.strip_suffix(INTERNAL).map_or_else(|| name.clone(), str::to_owned)
}

/// Whether a load balancer is for the nodes of a set.
pub(crate) fn is_for_set(policy: &Policy, balancer: &ResourceId, set: Option<&str>) -> bool {
    let Layout::PerNodeSet { without_own } = &policy.layout else { return true };
    let own = common_base(balancer);
    let shared = policy.balancer_name.as_ref().unwrap_or(&policy.cluster);
    let Some(set) = set else { return own.eq_ignore_ascii_case(shared) };
    let primary = policy.primary_set.is_empty()
        || policy.primary_set.eq_ignore_ascii_case(set)
        || without_own.iter().any(|name| name.eq_ignore_ascii_case(set));
    if primary { own.eq_ignore_ascii_case(shared) } else { own.eq_ignore_ascii_case(set) }
}

/// The base name at the start of a part's name, if it has the form of one: `a` and 31 hexadecimal
/// digits, then the end or a dash.
pub(super) fn base_of(name: &str) -> Option<&str> {
    let base = name.get(..BASE)?;
    let digits = base.strip_prefix(['a', 'A'])?;
    let next = name.as_bytes().get(BASE);
    (digits.bytes().all(|b| b.is_ascii_hexdigit()) && matches!(next, None | Some(b'-')))
        .then_some(base)
}

/// The base name at the start of a part's name, as a number.
#[must_use]
pub fn base_number(name: &str) -> Option<u128> {
    let (head, rest) = name.as_bytes().split_at_checked(BASE)?;
    let [b'a' | b'A', digits @ ..] = head else { return None };
    // As many as a word has room for are in the second half, one less in the first.
    let (high, low) = digits.split_at(digits.len() / 2);
    let number = u128::from(word(high)?) << u64::BITS | u128::from(word(low)?);
    matches!(rest.first(), None | Some(b'-')).then_some(number)
}

/// Up to sixteen hexadecimal digits as a number.
fn word(digits: &[u8]) -> Option<u64> {
    let step = |(number, all): (u64, u8), byte: &u8| {
        let digit = DIGITS[usize::from(*byte)];
        (number << 4 | u64::from(digit & 0xf), all | digit)
    };
    let (number, all) = digits.iter().fold((0, 0), step);
    (all < NO_DIGIT).then_some(number)
}

/// What each byte is as a hexadecimal digit.
static DIGITS: [u8; 256] = {
    let mut digits = [NO_DIGIT; 256];
    let mut digit = 0;
    while digit < 16 {
        let byte = b"0123456789abcdef"[digit as usize];
        digits[byte as usize] = digit;
        digits[byte.to_ascii_uppercase() as usize] = digit;
        digit += 1;
    }
    digits
};

/// The byte is none.
const NO_DIGIT: u8 = 0x10;

/// Whether a part's name is a Service's, by the folded base name.
pub fn is_of(part: &str, base: &str) -> bool {
    // The comparison is the cheaper half, and it is asked of all parts for all Services.
    let begins = part.get(..base.len()).is_some_and(|b| b.eq_ignore_ascii_case(base));
    begins && base_of(part).is_some_and(|b| b.len() == base.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise the rules of the other one are not counted where Azure answers in capitals.
    #[test]
    fn the_counterpart_is_found_in_any_letter_case() {
        for (one, other) in
            [("/LB", "/LB-internal"), ("/LB-INTERNAL", "/LB"), ("/ü", "/ü-internal")]
        {
            assert_eq!(counterpart(&ResourceId::new(one)), ResourceId::new(other));
        }
    }

    #[test]
    fn a_pool_of_the_cluster_is_told_by_its_name_in_any_letter_case() {
        for family in Family::ALL {
            let name = pool("kubernetes", family);
            assert!(is_pool("kubernetes", &name) && is_pool("Kubernetes", &name.to_uppercase()));
        }
        for other in
            ["", "-IPv6", "kubernetes-", "kubernetes-IPv4", "akubernetes", "ü-IPv6", "küIPv6"]
        {
            assert!(!is_pool("kubernetes", other), "{other}");
        }
    }

    #[test]
    fn the_family_of_a_pool_is_told_by_its_name_in_any_letter_case() {
        let service = ServiceName::new("default", "web");
        for family in Family::ALL {
            let all = [pool("kubernetes", family), local_pool(&service, family)];
            for name in all.into_iter().flat_map(|name| [name.to_uppercase(), name]) {
                assert_eq!(family_of_pool(&name), family, "{name}");
            }
        }
        for other in ["", "IPv6", "ü-IPv", "kubernetes-IPv4"] {
            assert_eq!(family_of_pool(other), Family::V4, "{other}");
        }
    }

    #[test]
    fn the_frontend_of_a_rule_is_told_by_the_rules_name() {
        let base = "a0000001c75404d308ae251124c65d1d";
        for frontend in [base.to_owned(), format!("{base}-my-apps")] {
            assert_eq!(frontend_of(&format!("{frontend}-TCP-80")), Some(frontend.clone()));
            let both = frontend_of(&format!("{frontend}-UDP-53-IPv6"));
            assert_eq!(both, Some(format!("{frontend}-IPv6")));
        }
        assert_eq!(frontend_of("theirs-TCP-80"), None);
    }

    #[test]
    fn allow_rules_are_named_by_a_digest_of_their_content() {
        let ports = BTreeSet::from(["80"]);
        assert_eq!(
            allow_rule(Family::V4, "Tcp", ["Internet"].into_iter(), &ports),
            "k8s-azure-lb_allow_IPv4_d39272f7f57ed937951650d93992ad77"
        );
    }

    #[test]
    fn base_names_are_recognised_by_their_form() {
        let base = "a000000011111422283330123456789a";
        assert_eq!(base_of(base), Some(base));
        assert_eq!(base_of(&format!("{base}-TCP-80")), Some(base));
        assert_eq!(base_of(&format!("{base}x")), None);
        assert_eq!(base_of("aksOutboundRule"), None);
        assert_eq!(base_of("cluster-service-shared-health-probe"), None);
        for name in [base, &format!("{base}-TCP-80"), &format!("{base}x"), "aksOutboundRule", ""] {
            let number = base_of(name).and_then(|base| u128::from_str_radix(&base[1..], 16).ok());
            assert_eq!(base_number(name), number, "{name}");
            assert_eq!(base_number(&name.to_uppercase()), number, "{name}");
        }
    }

    #[test]
    fn a_cut_name_ends_in_a_letter_or_an_underscore() {
        assert_eq!(cut("abc1".into(), 4), "abc1");
        assert_eq!(cut("abc12".into(), 4), "abc_");
        assert_eq!(cut("abcd2".into(), 4), "abcd");
    }
}
