//! What Services want to be open in the security group, whether there is one, and who gets what it
//! has room for.

pub(crate) mod room;
pub(crate) mod share;

use super::Refusal;
use crate::ask::{FloatingIp, Intent, SecurityRules};
use crate::draft::{Case, Draft};
use crate::own::name;
use crate::standing::security_group::is_idle;
use model::azure::Access;
use model::ledger::Holder;
use model::report::Finding;
use model::world::Fact;
use model::{Family, ServiceUid};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// What makes two rules the same rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shape {
    pub access: Access,
    pub family: Family,
    pub protocol: &'static str,
    pub sources: BTreeSet<Arc<str>>,
    pub ports: BTreeSet<Arc<str>>,
}

impl Shape {
    /// What the rule is called.
    pub fn name(&self) -> String {
        match self.access {
            Access::Allow => {
                let sources = self.sources.iter().map(AsRef::as_ref);
                name::allow_rule(self.family, self.protocol, sources, &self.ports)
            }
            Access::Deny if self.ports.contains("*") => name::deny_rule(self.family),
            Access::Deny => name::deny_ports_rule(self.family, self.protocol, &self.ports),
        }
    }
}

/// A rule that is wanted: who goes where, on whose account.
#[derive(Clone, Debug)]
pub(crate) struct WantedRule {
    pub shape: Shape,
    /// What the shape's rule is called.
    pub name: String,
    pub destinations: BTreeSet<Arc<str>>,
    /// Who wants which of the destinations.
    pub causes: BTreeMap<ServiceUid, BTreeSet<Arc<str>>>,
}

/// On whose account a Service has an address open: nodes are many, and every Service that leads to
/// them has the same ones open.
pub(crate) fn holder(draft: &Draft<'_>, uid: &ServiceUid, address: IpAddr) -> Holder {
    let intent = draft.cases.get(uid).and_then(|case| case.intent());
    let to_nodes = intent.is_some_and(|intent| {
        let translated = intent.rule_options.floating_ip == FloatingIp::Disabled;
        translated && !intent.additional.contains(&address)
    });
    if to_nodes { Holder::Node } else { Holder::Service(uid.clone()) }
}

/// Refuses Services with rules of their own where there is no group: an address that nothing can be
/// opened for serves nobody.
pub(crate) fn settle(draft: &mut Draft<'_>) {
    let missing = draft.world.azure.security_group == Fact::Known(None);
    if !missing || draft.policy.security_group_name.is_empty() || is_idle(draft) {
        return;
    }
    let finding = not_found(draft);
    let open = |case: &Case<'_>| case.intent().is_some_and(opens_something);
    let cases = draft.cases.iter().filter(|(_, case)| open(case));
    let uids: Vec<ServiceUid> = cases.map(|(uid, _)| uid.clone()).collect();
    uids.iter().for_each(|uid| draft.refuse(uid, Refusal::new(finding.clone())));
    draft.told.findings.push(finding);
}

/// Whether a Service has rules of its own.
fn opens_something(intent: &Intent) -> bool {
    let access = &intent.access;
    let sources = !access.tags.is_empty() || !access.ranges.is_empty();
    access.rules == SecurityRules::Written && sources && !access.ports.is_empty()
}

fn not_found(draft: &Draft<'_>) -> Finding {
    let message = format!(
        "security group {{value}} does not exist in resource group {}; create it or correct the \
         cloud config",
        draft.policy.security_group_group
    );
    Finding::refusal(
        "SecurityGroupNotFound",
        "securityGroupName",
        &draft.policy.security_group_name,
        &message,
    )
}
