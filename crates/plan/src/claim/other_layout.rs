//! Services wait until nothing of the other layout stands.

use crate::draft::Draft;
use crate::own::other_layout::{Leftover, RULE, is_suspected};
use model::policy::{BalancerSku, Layout};
use model::report::{Finding, Until, Wait};
use model::world::Need;
use model::{Policy, ResourceId, ServiceUid};
use std::collections::{BTreeMap, BTreeSet};

/// How many resources the finding names.
const NAMED: usize = 3;

/// What has to be read to know everything that container load balancers have left: nothing where
/// neither Services nor load balancers nor public IPs show that there were any.
pub(crate) fn needs(draft: &Draft<'_>, left: &[Leftover]) -> BTreeSet<Need> {
    let mut unread = BTreeSet::from([Need::NatGateways, Need::GatewayServices]);
    unread.retain(|need| draft.world.azure.is_unread(need));
    let due = !unread.is_empty() && (is_suspected(draft.world, draft.policy) || !left.is_empty());
    if due { unread } else { BTreeSet::new() }
}

/// Says what stands, and has every Service wait until it is gone. Nothing is planned.
pub(crate) fn freeze(draft: &mut Draft<'_>, left: &[Leftover]) {
    let Some(first) = left.first() else { return };
    draft.told.findings.push(finding(draft.policy, left));
    let mut of: BTreeMap<&ServiceUid, &ResourceId> = BTreeMap::new();
    for leftover in left {
        if let Some(uid) = &leftover.service {
            of.entry(uid).or_insert(&leftover.resource);
        }
    }
    for (uid, case) in &mut draft.cases {
        draft.claims.judged.insert(uid.clone());
        let id = of.get(uid).copied().unwrap_or(&first.resource).clone();
        case.waits.insert(Wait::Resource { id, until: Until::Gone });
        case.addresses = case.service.ingress.iter().filter_map(|i| i.ip.clone()).collect();
    }
}

fn finding(policy: &Policy, left: &[Leftover]) -> Finding {
    let (now, other, of) = match policy.layout {
        Layout::PerService => ("service", "standard or basic", "load balancers over nodes"),
        _ if policy.sku == BalancerSku::Basic => ("basic", "service", "container load balancers"),
        _ => ("standard", "service", "container load balancers"),
    };
    let mut whole: Vec<String> = left.iter().map(Leftover::whole).collect();
    whole.sort();
    whole.dedup();
    let more = whole.len().saturating_sub(NAMED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    whole.truncate(NAMED);
    let named = whole.join(", ");
    let message = format!(
        "must be {other} while resources of {of} exist: {named}{more} (`ballast orphans` lists all \
         of them). Nothing is written until they are gone. To keep the addresses, set \
         loadBalancerSku, loadBalancerBackendPoolConfigurationType and the other load balancer \
         keys back. To move the Services, {}",
        way(policy)
    );
    Finding::refusal(RULE, "loadBalancerSku", now, &message)
}

/// What the config lacks for Services to move.
fn way(policy: &Policy) -> &'static str {
    match (policy.layout == Layout::PerService, &policy.migration) {
        (true, None) => "set securityGroupName: it is open for Services over nodes",
        (true, Some(_)) => {
            "set layoutMigration.from to the load balancer keys of the former config; Basic load \
             balancers have to become Standard first"
        }
        (false, _) => "set layoutMigration: {}",
    }
}
