//! Whether load balancers of another SKU than the config's can be replaced: a load balancer keeps
//! its SKU for life. Where Azure would refuse half-way, nothing is begun.

use super::Refusal;
use crate::draft::{Draft, Stance};
use crate::own::{Owner, name};
use crate::standing::balancer::rules_and_probes;
use model::azure::{Allocation, FrontendAddress, LoadBalancer, Sku, Subnet};
use model::policy::BalancerSku;
use model::report::Finding;
use model::world::{Fact, Need};
use model::{Family, ResourceId, ServiceUid};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What has to be read before a Basic load balancer goes: what is to be had again has to be there.
pub(crate) fn needs(draft: &Draft<'_>) -> BTreeSet<Need> {
    if draft.policy.sku != BalancerSku::Standard {
        return BTreeSet::new();
    }
    let basics = ours(draft, Sku::Basic);
    let subnets = basics.iter().flat_map(|b| subnets(b)).map(Need::Subnet);
    subnets.filter(|need| draft.world.azure.is_unread(need)).collect()
}

/// The Basic load balancers that go, so that Standard ones take their place. Where one of them
/// cannot be replaced, none goes and its Services are refused.
pub(crate) fn settle(draft: &mut Draft<'_>) -> Vec<Arc<LoadBalancer>> {
    match draft.policy.sku {
        BalancerSku::Standard => {}
        BalancerSku::Basic => {
            refuse_standard(draft);
            return Vec::new();
        }
        BalancerSku::Service => return Vec::new(),
    }
    let basics = ours(draft, Sku::Basic);
    let findings: Vec<Finding> = basics.iter().flat_map(|b| obstacles(draft, b)).collect();
    if let Some(first) = findings.first() {
        refuse(draft, &basics, first);
        draft.told.findings.extend(findings);
        return Vec::new();
    }
    draft.basics.extend(basics.iter().map(|b| b.id.clone()));
    basics
}

/// Load balancers of this SKU that hold our Services, or have the name of one that would.
fn ours(draft: &Draft<'_>, sku: Sku) -> Vec<Arc<LoadBalancer>> {
    let is_ours = |b: &LoadBalancer| {
        b.frontends.iter().any(|f| draft.owner_of(&f.name).is_some())
            || name::is_balancer(draft.policy, b.id.name())
    };
    draft.each_balancer().filter(|b| b.sku == sku && is_ours(b)).cloned().collect()
}

/// Services with a frontend on a load balancer.
pub(crate) fn owners(draft: &Draft<'_>, balancer: &LoadBalancer) -> BTreeSet<ServiceUid> {
    balancer.frontends.iter().filter_map(|f| draft.owner_of(&f.name)).cloned().collect()
}

/// Subnets of a load balancer's frontends.
fn subnets(balancer: &LoadBalancer) -> impl Iterator<Item = ResourceId> {
    balancer.frontends.iter().filter_map(|f| match &f.address {
        FrontendAddress::Private { subnet, .. } => Some(subnet.clone()),
        FrontendAddress::Public(_) | FrontendAddress::Other => None,
    })
}

/// What Azure, or somebody else, would have against deleting a Basic load balancer.
fn obstacles(draft: &Draft<'_>, balancer: &LoadBalancer) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut say = |what: String, remedy: &str| {
        let message = format!(
            "Basic load balancer {} cannot be replaced by a Standard one, because it has {what}; \
             {remedy}",
            balancer.id.name()
        );
        let rule = "BasicLoadBalancerCannotBeReplaced";
        findings.push(Finding::refusal(rule, "loadBalancerSku", "", &message));
    };
    let others = "remove what is not this cluster's, because Ballast deletes the load \
                  balancer to create it as Standard";
    if !balancer.foreign.is_empty() {
        say("NAT or outbound rules".to_owned(), others);
    }
    let frontends = balancer.frontends.iter().map(|f| &f.name);
    let unknown = |name: &&Arc<str>| draft.whose(name) == Owner::Foreign;
    for name in frontends.chain(rules_and_probes(balancer)).filter(unknown) {
        say(format!("{name}, which belongs to no Service"), others);
    }
    for pool in &balancer.pools {
        if !name::is_pool(&draft.policy.cluster, &pool.name) {
            say(format!("pool {}, which is not this cluster's", pool.name), others);
        }
    }
    for frontend in &balancer.frontends {
        let Some(uid) = draft.owner_of(&frontend.name) else { continue };
        let case = &draft.cases[uid];
        if matches!(case.stance, Stance::Frozen(_) | Stance::Container(_)) {
            let what = format!("Service {}, which is refused or set aside", case.service.name);
            say(what, "correct or delete that Service first, as it would lose its address");
        }
        let id = match &frontend.address {
            FrontendAddress::Public(id) => id,
            FrontendAddress::Private { subnet, address: Some(address), .. } => {
                let fact = draft.world.azure.subnets.get(subnet).and_then(Fact::known);
                let fits = |s: &Option<Arc<Subnet>>| {
                    s.as_ref().is_some_and(|s| s.prefixes.iter().any(|p| p.contains(address)))
                };
                if fact.is_some_and(|subnet| !fits(subnet)) {
                    let what = format!("{address}, which is not in subnet {}", subnet.name());
                    say(what, "delete its Service first, as it would lose its address");
                }
                continue;
            }
            FrontendAddress::Private { .. } | FrontendAddress::Other => continue,
        };
        let Some(ip) = draft.public_ip(id) else { continue };
        if ip.sku == Sku::Basic && ip.family == Family::V6 && ip.allocation == Allocation::Dynamic {
            let what = format!("dynamic IPv6 public IP {}", id.name());
            say(what, "remove IPv6 from its Service first, as Azure cannot keep its address");
        }
    }
    findings
}

/// Services on these load balancers, and new ones, wait until it is decided.
fn refuse(draft: &mut Draft<'_>, balancers: &[Arc<LoadBalancer>], finding: &Finding) {
    let there: BTreeSet<ServiceUid> = balancers.iter().flat_map(|b| owners(draft, b)).collect();
    let placed: BTreeSet<ServiceUid> =
        draft.each_balancer().flat_map(|b| owners(draft, b)).collect();
    let wanted = draft.cases.iter().filter(|(_, case)| case.intent().is_some());
    let uids: Vec<ServiceUid> = wanted
        .map(|(uid, _)| uid)
        .filter(|u| there.contains(*u) || !placed.contains(*u))
        .cloned()
        .collect();
    uids.iter().for_each(|uid| draft.refuse(uid, Refusal::new(finding.clone())));
}

/// Whether a Basic public IP is used by something that is not about to let it go.
pub(crate) fn is_taken(draft: &Draft<'_>, user: &ResourceId) -> bool {
    let Some(owner) = user.parent() else { return true };
    let balancer = owner.folded().contains("/microsoft.network/loadbalancers/");
    let there = draft.balancer(&owner).is_some();
    let ours = owner.is_in(&draft.policy.balancer_group);
    !balancer || !ours || (there && !draft.basics.contains(&owner))
}

/// A Standard load balancer cannot become Basic, nor can its addresses.
fn refuse_standard(draft: &mut Draft<'_>) {
    let standard = ours(draft, Sku::Standard);
    let Some(balancer) = standard.first() else { return };
    let message = format!(
        "{{value}} is not possible, because load balancer {} is Standard; use standard, as Azure \
         cannot turn it into Basic",
        balancer.id.name()
    );
    let key = "loadBalancerSku";
    let finding = Finding::refusal("StandardCannotBecomeBasic", key, "basic", &message);
    refuse(draft, &standard, &finding);
    draft.told.findings.push(finding);
}
