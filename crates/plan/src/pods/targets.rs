//! Target ports that are names: the number is the Pods'.
//!
//! A rule leads to one number: the number that all ready Pods give the port in the EndpointSlices.
//! Where they differ, as in a rolling update that changes it, or where no Pod has such a port, the
//! rule stays as it stands: the Pods of the old number are those that served until then. Where none
//! stands there is none until they agree; a Service without any other port waits for that, and its
//! status tells no address.

use super::memory::Memory;
use super::table::DiffTracker;
use crate::ask::container::{ContainerIntent, ContainerPort, NamedPort};
use crate::ask::findings::{
    FindingRule, TARGET_PORT_SHARED, TARGET_PORT_UNKNOWN, TARGET_PORTS_DIFFER,
};
use crate::draft::{Draft, Stance};
use crate::own::{part, pod_names};
use model::azure::rule_protocol;
use model::report::{Finding, Wait};
use model::{Protocol, ServiceUid};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Finds the numbers of ports that have names, as far as Pods tell.
pub(super) fn resolve(draft: &mut Draft<'_>, memory: &Memory, names: &BTreeSet<Arc<str>>) {
    for (name, uid) in names.iter().filter_map(|name| Some((name, memory.uids.get(name)?))) {
        resolve_of(draft, &memory.tracker, name, uid);
    }
}

fn resolve_of(draft: &mut Draft<'_>, tracker: &DiffTracker, name: &Arc<str>, uid: &ServiceUid) {
    let Some(Stance::Container(intent)) = draft.cases.get(uid).map(|case| &case.stance) else {
        return;
    };
    if intent.named.is_empty() {
        return;
    }
    let mut intent = ContainerIntent::clone(intent);
    let mut taken: BTreeSet<(Protocol, u16)> =
        intent.ports.iter().map(|port| (port.protocol, port.backend_port)).collect();
    let mut findings = Vec::new();
    for port in std::mem::take(&mut intent.named) {
        let said = tracker.numbers(name, &port.name);
        let standing = standing(draft, name, &port);
        let number = match said.len() {
            1 => said.first().copied(),
            _ => standing,
        };
        let free = number.filter(|number| taken.insert((port.protocol, *number)));
        findings.extend(finding(&port, &said, number, free));
        let NamedPort { protocol, port, .. } = port;
        let resolved = |backend_port| ContainerPort { protocol, port, backend_port };
        intent.ports.extend(free.map(resolved));
    }
    if let Some(case) = draft.cases.get_mut(uid) {
        if intent.ports.is_empty() {
            case.waits.insert(Wait::Pods);
        }
        case.stance = Stance::Container(Arc::new(intent));
        case.findings.extend(findings);
    }
}

/// The number that the port's rule leads to.
fn standing(draft: &Draft<'_>, name: &str, port: &NamedPort) -> Option<u16> {
    let title = pod_names::rule(port.protocol, port.port);
    let protocol = rule_protocol(port.protocol);
    let mut rules = draft.container(name)?.rules.iter();
    let rule = rules.find(|rule| part::is_called(*rule, &title) && rule.protocol == protocol)?;
    Some(rule.backend_port)
}

fn finding(
    port: &NamedPort,
    said: &BTreeSet<u16>,
    number: Option<u16>,
    free: Option<u16>,
) -> Option<Finding> {
    let target = &port.target;
    let found = |rule: &FindingRule, value: String| rule.found("spec.ports", &value);
    let numbers: Vec<String> = said.iter().map(u16::to_string).collect();
    match (numbers.as_slice(), number, free) {
        ([_, _, ..], _, _) => {
            let value = format!("{target} is {}", numbers.join(", "));
            Some(found(&TARGET_PORTS_DIFFER, value))
        }
        (_, Some(number), None) => {
            Some(found(&TARGET_PORT_SHARED, format!("{target} is {number}")))
        }
        ([], None, _) => Some(found(&TARGET_PORT_UNKNOWN, format!("targetPort {target}"))),
        _ => None,
    }
}
