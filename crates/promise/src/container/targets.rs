//! Where the ports of a container load balancer lead on the Pods.
//!
//! What is promised (docs/container-load-balancer.md, "Named target ports"):
//! - A target port that is a name is the number that all Pods of the Service which are ready give
//!   the port in their EndpointSlices; where none is ready, all Pods.
//! - While they differ, or none has such a port, the port's rule stays as it was, or there is none.
//! - Two ports never lead to one number: numbers in the Service count first, then names in order.

use super::table::{is_foreign, is_possible, owner};
use crate::asks::{Asks, Port};
use crate::case::Case;
use crate::estate::{items, part, text};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Where the rule of a port leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// To this number.
    Number(u64),
    /// To the number that it led to before, if there was a rule.
    AsBefore,
    /// Nowhere: another port leads to that number, and there is no rule.
    Shared,
}

/// The target of each port, in their order.
pub(super) fn of(case: &Case<'_>, uid: &str, asks: &Asks, balancer: &Value) -> Vec<Target> {
    let fixed = asks.ports.iter().filter_map(|port| Some((port.protocol, port.target?)));
    let mut taken: BTreeSet<_> = fixed.collect();
    let target = |port: &Port| {
        if let Some(number) = port.target {
            return Target::Number(number);
        }
        let said = said(case, uid, &port.name);
        let protocol = port.protocol.in_rule();
        let rule = format!("rule-{}-{}", protocol.to_lowercase(), port.number);
        let stands = part(balancer, "loadBalancingRules", &rule);
        let stands = stands.and_then(|rule| rule["properties"]["backendPort"].as_u64());
        match (said.first().filter(|_| said.len() == 1), stands) {
            (Some(number), _) if taken.insert((port.protocol, *number)) => Target::Number(*number),
            (Some(_), _) => Target::Shared,
            (None, stands) => {
                taken.extend(stands.map(|number| (port.protocol, number)));
                Target::AsBefore
            }
        }
    };
    asks.ports.iter().map(target).collect()
}

/// The numbers that Pods of a Service give a port of this name.
fn said(case: &Case<'_>, uid: &str, name: &str) -> BTreeSet<u64> {
    let (mut ready, mut any) = (None, None);
    for slice in &case.scene.slices {
        let meta = &slice["metadata"];
        if owner(case, slice).as_deref() != Some(uid) || !meta["deletionTimestamp"].is_null() {
            continue;
        }
        let ports = items(&slice["ports"]).filter(|port| text(&port["name"]) == name);
        let numbers: BTreeSet<u64> =
            ports.filter_map(|port| port["port"].as_u64()).filter(|number| *number > 0).collect();
        let namespace = text(&meta["namespace"]);
        let own = items(&slice["endpoints"]).filter(|e| !is_foreign(e, namespace) && is_placed(e));
        for endpoint in own {
            let counts: &mut Option<BTreeSet<u64>> =
                if endpoint["conditions"]["ready"] == false { &mut any } else { &mut ready };
            counts.get_or_insert_default().extend(&numbers);
        }
    }
    ready.or(any).unwrap_or_default()
}

/// Whether an endpoint has an address that a Pod can have, and says on which node.
fn is_placed(endpoint: &Value) -> bool {
    let mut addresses = items(&endpoint["addresses"]);
    addresses.any(|a| text(a).parse::<IpAddr>().is_ok_and(is_possible))
        && !text(&endpoint["nodeName"]).is_empty()
}
