//! Pieces of expressions.

use super::probes;
use crate::ask::annotation::{self, PREFIX, Truth};
use model::Policy;
use model::policy::BalancerSku;

/// A name of a network resource, or nothing.
pub const NAME: &str = "^([A-Za-z0-9_]([A-Za-z0-9._-]{0,78}[A-Za-z0-9_])?)?$";
/// The letters of a name of a resource group. How many there are is counted elsewhere: letters of
/// all scripts, many times over, make a pattern that takes long to read.
pub const GROUP: &str = "[\\p{L}\\p{N}._()-]*[\\p{L}\\p{N}_()-]";
/// A whole number, before its bounds are looked at.
const WHOLE: &str = "^[+]?[0-9]{1,18}$";

/// A text as CEL writes it, without escapes.
pub fn quote(text: &str) -> String {
    format!("r'{text}'")
}

/// An annotation's value without blanks around it; empty where there is none.
pub fn text(key: &str) -> String {
    value(&quote(&annotation::full(key)))
}

/// The same for a key that is an expression.
fn value(key: &str) -> String {
    format!("({key} in variables.a ? variables.a[{key}].trim() : '')")
}

/// The value of an annotation of a port; `number` is an expression.
pub fn of_port(number: &str, rest: &str) -> String {
    value(&port_key(number, rest))
}

fn port_key(number: &str, rest: &str) -> String {
    format!("('{PREFIX}port_' + string({number}) + '_{rest}')")
}

/// Whether an annotation is there.
pub fn present(key: &str) -> String {
    format!("({} in variables.a)", quote(&annotation::full(key)))
}

/// Whether an annotation says true, as its entry in the table reads it.
pub fn is_set(key: &str) -> String {
    is_true(key, annotation::truth(key))
}

/// Whether an annotation says true, read in this way.
pub fn is_true(key: &str, truth: Truth) -> String {
    says_true(&whole(&quote(&annotation::full(key))), truth)
}

/// Whether an expression says true, read in this way.
pub fn says_true(value: &str, truth: Truth) -> String {
    match truth {
        Truth::Exact => format!("{value} == 'true'"),
        Truth::AnyCase => format!("{value}.lowerAscii() == 'true'"),
        Truth::Trimmed => format!("{value}.trim().lowerAscii() == 'true'"),
    }
}

/// The value of an annotation with the blanks around it; `key` is an expression.
fn whole(key: &str) -> String {
    format!("({key} in variables.a ? variables.a[{key}] : '')")
}

/// Whether an expression matches a pattern.
pub fn matches(value: &str, pattern: &str) -> String {
    format!("{value}.matches({})", quote(pattern))
}

/// Whether an expression is a name of a resource group, or empty.
pub fn is_group(value: &str) -> String {
    format!("(size({value}) <= 90 && {})", matches(value, &format!("^({GROUP})?$")))
}

/// The entries of an annotation, separated by commas.
pub fn list(key: &str) -> String {
    entries(key, ',')
}

/// The entries of an annotation that is there, separated by commas, empty ones among them.
pub fn list_with_empty(key: &str) -> String {
    let entries = format!("{}.split(',').map(e, e.trim())", text(key));
    format!("({} ? {entries} : [])", present(key))
}

/// The entries of an annotation, separated by blanks.
pub fn words(key: &str) -> String {
    entries(key, ' ')
}

fn entries(key: &str, separator: char) -> String {
    format!("{}.split('{separator}').map(e, e.trim()).filter(e, e != '')", text(key))
}

/// Whether a text is a whole number within bounds.
pub fn is_whole(value: &str, from: u64, to: u64) -> String {
    format!("({} && int({value}) >= {from} && int({value}) <= {to})", matches(value, WHOLE))
}

/// Whether a text is a range whose host bits are zero.
pub fn is_range(value: &str) -> String {
    format!("isCIDR({value}) && cidr({value}).masked() == cidr({value})")
}

/// Whether an annotation of a port says true; `port` is the name of the port.
pub fn is_set_of_port(port: &str, rest: &str) -> String {
    let truth = annotation::truth(&format!("port_80_{rest}"));
    says_true(&whole(&port_key(&format!("{port}.port"), rest)), truth)
}

/// The first of two annotations that is there, else a default: that of the port `number`, or that
/// of all ports. The default is an expression.
pub fn of_port_or_all(number: &str, rest: &str, all: &str, default: &str) -> String {
    let (key, all) = (port_key(number, rest), quote(&format!("{PREFIX}{all}")));
    format!(
        "({key} in variables.a ? variables.a[{key}].trim() : {all} in variables.a ? \
         variables.a[{all}].trim() : {default})"
    )
}

/// All annotations.
pub fn annotations() -> (&'static str, String) {
    let there = "has(object.metadata.annotations) ? object.metadata.annotations : {}";
    ("a", there.to_owned())
}

/// What the denying policy's validations share.
pub fn variables(policy: &Policy) -> Vec<(&'static str, String)> {
    let mut all = vec![
        annotations(),
        ("internal", is_set("azure-load-balancer-internal")),
        (
            "families",
            "has(object.spec.ipFamilies) && size(object.spec.ipFamilies) > 0 ? \
             object.spec.ipFamilies : ['IPv4']"
                .to_owned(),
        ),
        ("ports", "has(object.spec.ports) ? object.spec.ports : []".to_owned()),
        (
            "fieldRanges",
            "(has(object.spec.loadBalancerSourceRanges) ? object.spec.loadBalancerSourceRanges : \
             []).map(r, r.trim())"
                .to_owned(),
        ),
    ];
    if policy.sku != BalancerSku::Service {
        all.extend(of_nodes(policy));
    }
    all
}

fn of_nodes(policy: &Policy) -> Vec<(&'static str, String)> {
    let high = match policy.sku {
        BalancerSku::Standard => format!(
            "variables.internal && {}",
            is_set("azure-load-balancer-enable-high-availability-ports")
        ),
        BalancerSku::Basic | BalancerSku::Service => "false".to_owned(),
    };
    vec![
        ("link", is_set("azure-pls-create")),
        ("translated", is_set("azure-disable-load-balancer-floating-ip")),
        ("highAvailability", high),
        (
            "annotatedRanges",
            format!(
                "{} + {}",
                list_with_empty("azure-allowed-ip-ranges"),
                list_with_empty("load-balancer-source-ranges")
            ),
        ),
        (
            "pinned",
            "has(object.spec.loadBalancerIP) ? object.spec.loadBalancerIP.trim() : ''".to_owned(),
        ),
        ("name4", of_family4("azure-pip-name")),
        ("name6", of_family6("azure-pip-name")),
        ("prefix4", of_family4("azure-pip-prefix-id")),
        ("prefix6", of_family6("azure-pip-prefix-id")),
        ("local", local().to_owned()),
        ("healthCheck", health_check(policy)),
        ("probed", probes::probed(policy)),
        (
            "timed",
            "variables.probed.map(p, p.port) + (variables.healthCheck ? \
             [object.spec.healthCheckNodePort] : [])"
                .to_owned(),
        ),
    ]
}

fn of_family4(key: &str) -> String {
    format!("'IPv4' in variables.families ? {} : ''", text(key))
}

fn of_family6(key: &str) -> String {
    let (six, plain) = (text(&format!("{key}-ipv6")), text(key));
    format!(
        "!('IPv6' in variables.families) ? '' : size(variables.families) > 1 || {six} != '' ? \
         {six} : {plain}"
    )
}

fn local() -> &'static str {
    "has(object.spec.externalTrafficPolicy) && object.spec.externalTrafficPolicy == 'Local'"
}

/// Whether one probe asks for the Service: the health check node port, or the agent.
fn health_check(policy: &Policy) -> String {
    let has = "variables.local && has(object.spec.healthCheckNodePort) && \
               object.spec.healthCheckNodePort > 0";
    if policy.health_check.agent_port().is_some() {
        return has.to_owned();
    }
    format!(
        "{has} && !({} && {})",
        is_true("azure-pls-create", Truth::AnyCase),
        is_true("azure-pls-proxy-protocol", Truth::AnyCase)
    )
}

/// Whether a port has a node port.
pub const NODE_PORT: &str = "(has(p.nodePort) && p.nodePort > 0)";
