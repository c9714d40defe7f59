//! A World in which all is done, for whoever measures what a plan takes.

use super::converge::{Backends, backends_of, create_all, empty_site};
use super::{Progress, Stuck, come_to_rest};
use model::kubernetes::{Affinity, Service};
use model::world::Fact;
use model::{Policy, World};
use std::sync::Arc;

/// What the controller knows of a cluster once nothing is left to do.
#[derive(Clone, Debug)]
pub struct Settled {
    /// What it knows.
    pub world: World,
    /// The cloud config.
    pub policy: Policy,
    /// What is behind the Services.
    pub backends: Backends,
}

impl Settled {
    /// Lets so many Services be programmed, as [`super::converge`] does.
    ///
    /// # Errors
    /// They are not, within a simulated day.
    pub fn with(services: u32, tell: &mut dyn FnMut(Progress)) -> Result<Self, Stuck> {
        let mut site = empty_site(services);
        create_all(&mut site, services);
        let what = format!("{services} Services");
        come_to_rest(&mut site.lab, &what, services as usize, tell)?;
        let controller = site.lab.controller();
        let (world, policy) = (controller.world().clone(), controller.policy().clone());
        Ok(Self { world, policy, backends: backends_of(services) })
    }

    /// A change of one Service: a Pod less, or another distribution where nodes are behind it.
    pub fn change_one(&mut self) {
        match self.backends {
            Backends::Nodes => {
                let first = self.world.kubernetes.services.values_mut().next();
                first.into_iter().for_each(pin);
            }
            Backends::Pods => {
                let first = self.world.kubernetes.slices.values_mut().next();
                first.into_iter().for_each(|slice| {
                    Arc::make_mut(slice).endpoints.pop();
                });
            }
        }
    }

    /// The same change of every Service, and every object and resource is another value in memory,
    /// as after all lists were read again.
    pub fn change_all(&mut self) {
        let kubernetes = &mut self.world.kubernetes;
        kubernetes.nodes.values_mut().for_each(renew);
        kubernetes.slices.values_mut().for_each(renew);
        kubernetes.services.values_mut().for_each(renew);
        match self.backends {
            Backends::Nodes => kubernetes.services.values_mut().for_each(pin),
            Backends::Pods => kubernetes.slices.values_mut().for_each(|slice| {
                Arc::make_mut(slice).endpoints.pop();
            }),
        }
        let azure = &mut self.world.azure;
        azure.balancers.known_mut().into_iter().flat_map(|all| all.values_mut()).for_each(renew);
        for ips in azure.public_ips.values_mut().filter_map(Fact::known_mut) {
            ips.values_mut().for_each(renew);
        }
    }
}

fn pin(service: &mut Arc<Service>) {
    Arc::make_mut(service).affinity = Affinity::ClientIp;
}

/// The same value in another place.
fn renew<T: Clone>(value: &mut Arc<T>) {
    *value = Arc::new(T::clone(value));
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::Planner;

    /// Once they have settled nothing is planned; after a change of one, or of all, one call is.
    fn one_call_a_change(services: u32) {
        let mut settled = Settled::with(services, &mut |_| {}).expect("the Services settle");
        let mut planner = Planner::default();
        let (plan, _) = planner.plan(&settled.world, &settled.policy);
        assert!(plan.is_empty(), "nothing is left to do");
        for change in [Settled::change_one, Settled::change_all] {
            change(&mut settled);
            let (plan, _) = planner.plan(&settled.world, &settled.policy);
            assert_eq!(plan.changes.len(), 1, "{services} Services");
        }
    }

    #[test]
    fn a_settled_cluster_needs_nothing_and_a_changed_one_does() {
        one_call_a_change(3);
    }

    #[test]
    fn with_pods_a_change_is_of_the_address_table() {
        one_call_a_change(2_001);
    }
}
