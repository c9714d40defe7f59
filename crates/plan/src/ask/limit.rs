//! What no security group and no load balancer has room for, even if it held this Service alone.
//!
//! Said while a Service is read, so that such a one costs nothing when others change.

use super::access::{CORE_RANGES, FIELD, RANGES, TAGS};
use super::additional::KEY;
use super::findings::{LOAD_BALANCER_RULE_LIMIT, SECURITY_RULE_LIMIT};
use super::reader::Reader;
use super::{AccessIntent, ProbeName, RuleIntent, SecurityRules};
use crate::ask::annotation::full;
use model::policy::BalancerSku;
use model::{Family, Protocol};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Rules of a load balancer (Azure subscription and service limits, "Load balancer"). The page
/// names the SKU Standard; that SKU Service takes no more is assumed.
pub(crate) const RULES: usize = 1_500;
/// Rules of a Basic load balancer.
pub(crate) const RULES_ON_BASIC: usize = 250;
/// Rules of a security group (Azure subscription and service limits, "Networking limits").
pub(crate) const SECURITY_RULES: usize = 1_000;
/// Source prefixes, and destination prefixes, of all rules of a security group (as above).
pub(crate) const PREFIXES: usize = 4_000;
/// Bytes of a request that Azure Resource Manager takes ("RequestContentTooLarge").
const REQUEST: usize = 4 << 20;

/// Refuses what has no room anywhere.
pub(super) fn check(
    r: &mut Reader<'_>,
    families: &[Family],
    rules: &[RuleIntent],
    additional: &[IpAddr],
    access: &AccessIntent,
) {
    count(r, rules.len() * families.len());
    paths(r, families, rules);
    // What is not written has no limit.
    if access.rules == SecurityRules::Written && !r.policy.security_group_name.is_empty() {
        security(r, families, additional, access);
    }
}

/// Refuses more rules than a load balancer takes: one whose backends are nodes, or Pods.
pub(super) fn count(r: &mut Reader<'_>, rules: usize) {
    let most = if r.policy.sku == BalancerSku::Basic { RULES_ON_BASIC } else { RULES };
    if rules > most {
        let message = format!("{{value}} do not fit on a load balancer; it has at most {most}");
        let value = format!("{rules} rules");
        r.find_with(&LOAD_BALANCER_RULE_LIMIT, "spec.ports", &value, &message);
    }
}

/// Each probe of a port is written with its request path.
fn paths(r: &mut Reader<'_>, families: &[Family], rules: &[RuleIntent]) {
    let probes = rules.iter().filter_map(|rule| rule.probe.as_ref());
    let own = probes.filter(|probe| matches!(probe.name, ProbeName::Rule | ProbeName::Beside));
    let paths: Vec<usize> = own.filter_map(|probe| Some(probe.path.as_ref()?.len())).collect();
    let bytes = paths.iter().sum::<usize>() * families.len();
    if bytes > REQUEST {
        let value = format!("{} request paths of probes, {bytes} bytes", paths.len());
        let message = format!("{{value}} do not fit in a request; it has at most {REQUEST} bytes");
        r.find_with(&LOAD_BALANCER_RULE_LIMIT, "spec.ports", &value, &message);
    }
}

fn security(r: &mut Reader<'_>, families: &[Family], additional: &[IpAddr], access: &AccessIntent) {
    let protocols: BTreeSet<Protocol> = access.ports.iter().map(|port| port.protocol).collect();
    let ranges = |family: &Family| access.ranges.get(family).map_or(0, Vec::len);
    let limit = |r: &mut Reader<'_>, key: &str, value: String, most: String| {
        let message = format!("{{value}} do not fit in a security group; it has at most {most}");
        r.find_with(&SECURITY_RULE_LIMIT, key, &value, &message);
    };
    let rules = access.tags.len() * protocols.len() * families.len();
    if rules > SECURITY_RULES {
        let value = format!("{} service tags, which make {rules} rules", access.tags.len());
        limit(r, &full(TAGS), value, format!("{SECURITY_RULES} rules"));
    }
    let prefixes = families.iter().map(ranges).sum::<usize>() * protocols.len();
    if prefixes > PREFIXES {
        let key = [RANGES, CORE_RANGES].into_iter().find(|key| !r.list(key).is_empty());
        let key = key.map_or_else(|| FIELD.to_owned(), full);
        let value = format!("ranges that make {prefixes} source prefixes");
        limit(r, &key, value, format!("{PREFIXES} source prefixes"));
    }
    let sources = |family: &Family| access.tags.len() + usize::from(ranges(family) > 0);
    let opened = |family: &Family| {
        let own = additional.iter().filter(|address| Family::of(**address) == *family).count();
        own * sources(family) * protocols.len()
    };
    let opened: usize = Family::ALL.iter().map(opened).sum();
    if opened > PREFIXES {
        let value = format!("{} addresses, {opened} times in rules", additional.len());
        let most = format!("{PREFIXES} destination prefixes");
        limit(r, &full(KEY), value, most);
    }
    // As in `"12345",`.
    let ports: usize = access.ports.iter().map(|port| port.port.to_string().len() + 3).sum();
    let bytes = ports * families.iter().map(sources).sum::<usize>();
    if bytes > REQUEST {
        let value = format!("{} ports, {bytes} bytes of rules", access.ports.len());
        limit(r, "spec.ports", value, format!("{REQUEST} bytes"));
    }
}
