//! Names of backend pools, where Services have pools to themselves: `namespace-name` is the name of
//! many namespaces and names.

use super::Refusal;
use crate::ask::Intent;
use crate::draft::{Draft, Stance};
use crate::own::{self, name};
use model::policy::Layout;
use model::report::Finding;
use model::{Family, ResourceId, ServiceName, ServiceUid};
use std::collections::{BTreeMap, BTreeSet};

/// Who has rules that lead to a pool.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Holder {
    Service(ServiceUid),
    Other,
}

/// Who claims a pool's name, and who leads there.
#[derive(Debug, Default)]
struct Contest {
    claimants: BTreeSet<ServiceUid>,
    holders: BTreeSet<(ResourceId, Holder)>,
}

/// Refuses Services whose pool would be another's.
pub(super) fn settle(draft: &mut Draft<'_>) {
    if !matches!(draft.policy.layout, Layout::Several(_)) {
        return;
    }
    let contests = contests(draft);
    let cluster = Family::ALL.map(|f| name::folded(&name::pool(&draft.policy.cluster, f)));
    let mut refused: BTreeMap<ServiceUid, Finding> = BTreeMap::new();
    for (pool, contest) in &contests {
        for uid in &contest.claimants {
            let taken = if cluster.contains(pool) {
                Some("the cluster's own backend pool".to_owned())
            } else {
                contest.holder(draft, uid)
            };
            let Some(holder) = taken else { continue };
            let message = format!(
                "the backend pool of {{value}} would be {pool}, the name of {holder}; rename the \
                 Service"
            );
            let name = draft.cases[uid].service.name.to_string();
            let finding = Finding::refusal("PoolNameTaken", "metadata.name", &name, &message);
            refused.entry(uid.clone()).or_insert(finding);
        }
    }
    refused.into_iter().for_each(|(uid, finding)| draft.refuse(&uid, Refusal::new(finding)));
}

/// The pools that Services want to themselves, by folded name.
fn contests(draft: &Draft<'_>) -> BTreeMap<String, Contest> {
    let mut contests: BTreeMap<String, Contest> = BTreeMap::new();
    let own = |intent: &&Intent| name::has_own_pool(draft.policy, intent);
    for intent in draft.cases.values().filter_map(|case| case.intent()).filter(own) {
        for family in &intent.families {
            let name = name::folded(&name::local_pool(&intent.name, *family));
            contests.entry(name).or_default().claimants.insert(intent.uid.clone());
        }
    }
    if contests.is_empty() {
        return contests;
    }
    for balancer in draft.each_balancer() {
        for rule in &balancer.rules {
            let Some(pool) = &rule.pool else { continue };
            let Some(contest) = contests.get_mut(&name::folded(pool.name())) else { continue };
            let holder = match draft.owner_of(&rule.name) {
                Some(uid) => Holder::Service(uid.clone()),
                // A Service that is gone: its pool goes with its rules.
                None if own::is_named_after_one(&rule.name) => continue,
                None => Holder::Other,
            };
            contest.holders.insert((balancer.id.clone(), holder));
        }
    }
    contests
}

impl Contest {
    /// Who has the pool rather than this claimant.
    fn holder(&self, draft: &Draft<'_>, uid: &ServiceUid) -> Option<String> {
        let name = |uid: &ServiceUid| -> &ServiceName { &draft.cases[uid].service.name };
        let own = Holder::Service(uid.clone());
        let homes: BTreeSet<&ResourceId> =
            self.holders.iter().filter(|(_, by)| *by == own).map(|(id, _)| id).collect();
        // One that was made anew under its name goes on with its pool.
        let others = self.holders.iter().filter_map(|(id, by)| match by {
            Holder::Service(other) if name(other) == name(uid) => None,
            Holder::Service(other) => Some((id, Some(other))),
            Holder::Other => Some((id, None)),
        });
        if homes.is_empty() {
            let standing = others.map(|(_, by)| by).next();
            let first = || self.claimants.iter().find(|other| *other < uid).map(Some);
            return standing.or_else(first).map(|by| describe(by.map(name)));
        }
        // Both lead to one pool already: the first UID has it, if the pool is its own at all.
        let rival = others.filter(|(id, _)| homes.contains(id)).find_map(|(_, by)| {
            let by = by?;
            let claims =
                self.claimants.contains(by) || matches!(draft.cases[by].stance, Stance::Frozen(_));
            (claims && by < uid).then_some(by)
        });
        rival.map(|by| describe(Some(name(by))))
    }
}

fn describe(holder: Option<&ServiceName>) -> String {
    holder.map_or_else(
        || "a pool that rules of others lead to".to_owned(),
        |name| format!("that of Service {name}"),
    )
}
