//! Services move between load balancers over nodes and container load balancers, live.
//!
//! Each kind of load balancers is planned by itself, from a World in which it alone exists: the
//! parts of Azure that are of its kind, and of each Service the addresses that are its own
//! (`view.rs`). What differs is only whether a Service is still wanted there, and that follows from
//! the Service alone (`stage.rs`): its status and its condition. The two plans are one afterwards
//! (`join.rs`): Azure's resources of the two kinds are different ones, and of what is written to a
//! Service each tells its part.
//!
//! # Guarantees
//! - A Service that was served is served at every moment: the former load balancer goes only after
//!   the new one's addresses have been in the status alone for the time that the config says, and
//!   only while the new one is seen to lead from them to the Service.
//! - A Service that the new kind of load balancers refuses keeps the former one.
//! - What a Service has of both kinds stays as it is while the kind that it moves to refuses what
//!   it asks: an edit counts for both or for none.
//! - There is no state beside Azure and the Services: a move goes on after a restart, and turns
//!   around when the config does.

mod join;
mod led;
mod stage;
#[cfg(test)]
mod tests;
mod view;

use crate::own::other_layout::{self, Leftover};
use crate::own::{self, Own};
use crate::tell::kubernetes::object;
use crate::{Beside, Planner, Refused};
use model::azure::{LoadBalancer, Sku};
use model::kubernetes::Backends;
use model::plan::{Edit, KubernetesWrite, MoveEdit};
use model::policy::{Chosen, Layout, Migration, OutboundSnat, PoolKind};
use model::world::Need;
use model::{Plan, Policy, Report, World};
use stage::Stages;
use std::sync::Arc;
use view::Views;

/// The rule of the note on the whole.
pub const MOVING: &str = "LayoutMigration";

/// How often both kinds are planned, each with what the other refuses.
const ROUNDS: usize = 4;

/// What is remembered of a migration between two plans.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Plans the load balancers that Services leave.
    former: Planner,
    views: Views,
}

/// What is to be done about the other kind of load balancers.
pub(crate) enum Course {
    /// None stand, as far as Azure has been read.
    Alone,
    /// They stand, and nothing leads from them to these: nothing is written until they are gone.
    Blocked(Vec<Leftover>),
    /// Services move.
    Moving(Box<Sides>),
}

/// A migration under way.
pub(crate) struct Sides {
    /// The policy of the load balancers that Services move to.
    pub target: Policy,
    /// The policy of those that they leave.
    pub former: Policy,
    /// How they move.
    pub migration: Migration,
    /// What stands of the load balancers that they leave.
    pub left: Vec<Leftover>,
}

impl Sides {
    /// What a Service's load balancer leads to in the end.
    fn home(&self, name: &model::ServiceName) -> Backends {
        let target = self.target.backends();
        if self.migration.chosen.has(name) { target } else { target.other() }
    }
}

/// What is to be done about the other kind of load balancers.
pub(crate) fn course(world: &World, policy: &Policy) -> Course {
    let own = Own::new(world, policy);
    let left = other_layout::find(world, policy, &own);
    let Some(migration) = &policy.migration else {
        return if left.is_empty() { Course::Alone } else { Course::Blocked(left) };
    };
    // What a Service says of its move is taken back last.
    let mut services = world.kubernetes.services.values();
    let told = services.any(|service| service.moving.is_some());
    let rests = !left.is_empty() || told || is_open(world, policy);
    if !rests && migration.chosen == Chosen::All {
        return Course::Alone;
    }
    let former = former(world, migration);
    if !is_of(world, &former, &left) {
        return Course::Blocked(left);
    }
    let target = Policy { migration: None, ..policy.clone() };
    Course::Moving(Box::new(Sides { target, former, migration: migration.clone(), left }))
}

/// Whether the ledger still has addresses that Services over nodes opened.
fn is_open(world: &World, policy: &Policy) -> bool {
    let ledger = world.kubernetes.ledger.known();
    policy.backends() == Backends::Pods && ledger.is_some_and(|l| !l.destinations.is_empty())
}

/// Whether all that stands is of the load balancers that the former policy has.
fn is_of(world: &World, former: &Policy, left: &[Leftover]) -> bool {
    match former.layout {
        // Which sets there were is not known.
        Layout::PerService | Layout::PerNodeSet { .. } => return true,
        Layout::Single | Layout::Several(_) => {}
    }
    let of = |leftover: &Leftover| {
        let balancer = world.azure.balancers.known().and_then(|all| all.get(&leftover.resource));
        balancer.is_none_or(|b| b.sku != Sku::Basic && other_layout::is_named(former, b.id.name()))
    };
    left.iter().all(of)
}

/// The policy of the load balancers that Services leave. What pools hold and whether rules let
/// nodes out stays as Azure has it.
fn former(world: &World, migration: &Migration) -> Policy {
    let from = Policy { migration: None, ..Policy::clone(&migration.from) };
    if from.backends() == Backends::Pods {
        return from;
    }
    let balancers = world.azure.balancers.each();
    let ours: Vec<&Arc<LoadBalancer>> = balancers.filter(|b| b.sku == Sku::Standard).collect();
    let mut rules = ours.iter().flat_map(|b| &b.rules).filter(|r| own::is_named_after_one(&r.name));
    let closed = rules.any(|rule| rule.disable_outbound_snat == Some(true));
    let pools = || ours.iter().flat_map(|b| &b.pools);
    let kind = if pools().any(|pool| pool.nics.is_empty() && !pool.addresses.is_empty()) {
        PoolKind::NodeIp
    } else if pools().any(|pool| !pool.nics.is_empty()) {
        PoolKind::NodeNic
    } else {
        from.pools
    };
    Policy {
        pools: kind,
        outbound_snat: if closed { OutboundSnat::Disabled } else { from.outbound_snat },
        ..from
    }
}

/// Plans both kinds of load balancers.
pub(crate) fn plan(
    planner: &mut Planner,
    memory: &mut Memory,
    world: &World,
    sides: &Sides,
) -> (Plan, Report) {
    let stages = Stages::of(world, sides);
    let mut refused = Refused::new();
    let mut rounds = 0;
    loop {
        let kinds = [(&mut *planner, &sides.target), (&mut memory.former, &sides.former)];
        let [to, from] = kinds.map(|(planner, policy)| {
            let backends = policy.backends();
            let kept = stages.kept(&refused, backends);
            let view = memory.views.of(world, sides, &stages, (backends, &kept));
            planner.side(&view, policy, Beside { left: &[], refused: &kept })
        });
        let planned = match sides.target.backends() {
            Backends::Nodes => join::Planned { nodes: to, pods: from },
            Backends::Pods => join::Planned { nodes: from, pods: to },
        };
        // What one Service keeps may be what another was refused.
        let found = planned.refused(&stages);
        rounds += 1;
        if found == refused || rounds == ROUNDS {
            return join::join(world, sides, &stages, planned);
        }
        refused = found;
    }
}

/// Whether everything has been read that shows load balancers of either kind.
fn is_read(world: &World, policy: &Policy) -> bool {
    let ips = Need::PublicIps(policy.group.clone());
    let needs = [Need::Balancers, ips, Need::NatGateways, Need::GatewayServices];
    needs.iter().all(|need| world.azure.is_known(need))
}

/// Takes away what conditions say of moves that are over: nothing of the former load balancers
/// stands, and everything has been read that would show it. Whether no condition says anything.
pub(crate) fn end(world: &World, policy: &Policy, plan: &mut Plan) -> bool {
    if !is_read(world, policy) {
        return false;
    }
    let mut silent = true;
    let over = world.kubernetes.services.values().filter(|service| service.moving.is_some());
    for service in over {
        silent = false;
        let object = object(service);
        let mut planned = plan.writes.iter_mut().filter(|write| write.object == object);
        match planned.next().map(|write| &mut write.edit) {
            Some(Edit::Status { moving, .. }) => *moving = MoveEdit::Remove,
            // One write at a time an object: it goes with the next.
            Some(Edit::Finalizers { .. } | Edit::Gate { .. }) => {}
            None => {
                let (ingress, condition) = (None, model::plan::ConditionEdit::Keep);
                let edit = Edit::Status { ingress, condition, moving: MoveEdit::Remove };
                plan.writes.push(KubernetesWrite { object, edit });
            }
        }
    }
    silent
}
