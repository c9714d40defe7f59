//! Values that the validations of a policy share.

use super::cel::{annotations, is_set, is_true, list_with_empty, text, words};
use super::{container, probes};
use model::Policy;
use model::policy::BalancerSku;
use plan::ask::annotation::Truth;

/// What the denying policy's validations share.
pub fn all(policy: &Policy) -> Vec<(&'static str, String)> {
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
    match policy.sku {
        BalancerSku::Service => all.push(("targets", container::targets())),
        BalancerSku::Basic | BalancerSku::Standard => all.extend(of_nodes(policy)),
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
        ("linkAddresses", words("azure-pls-ip-configuration-ip-address")),
        ("portNames", probes::port_names().to_owned()),
        ("local", local().to_owned()),
        ("healthCheck", health_check(policy)),
        ("probed", probes::probed(policy)),
        ("timed", probes::timed()),
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
