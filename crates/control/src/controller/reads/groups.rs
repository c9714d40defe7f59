//! Lists of resource groups that only Services name, and subnets that only Services name. Once no
//! Service names the group or the subnet, what was read of it is forgotten: every group and every
//! subnet that a Service ever named would be read for ever otherwise.
//!
//! # Guarantees
//! - The controller goes on reading a list while a Service names the group, or one that is gone and
//!   waits for the list; while the group holds anything of this cluster's, or while a load balancer
//!   stands on a public IP of the group. The controller goes on reading a subnet while a Service
//!   names it, or while a frontend or a Private Link Service stands in it.
//! - After that the controller reads it for [`UNFOLLOWED_MS`] more: an operation of a former
//!   leader may last that long.

use crate::controller::Controller;
use crate::reads::UNFOLLOWED_MS;
use model::azure::{Frontend, FrontendAddress};
use model::kubernetes::Service;
use model::world::{Fact, Need};
use model::{Group, ResourceId};
use plan::own::{Own, Whose};
use std::sync::Arc;

impl Controller {
    /// Forgets what a read was answered with, if it has not been needed for long.
    pub(crate) fn forget_unused(&mut self, need: &Need, now_ms: u64) {
        let used = match (need, self.named_group(need)) {
            (Need::Subnet(subnet), _) => self.is_subnet_used(need, subnet),
            (_, Some(group)) => self.is_used(need, group),
            (_, None) => return,
        };
        let Some(read) = self.reads.store.get_mut(need) else { return };
        if used {
            read.unused_ms = None;
            return;
        }
        let since_ms = *read.unused_ms.get_or_insert(now_ms);
        if read.is_under_way() || now_ms < since_ms + UNFOLLOWED_MS {
            return;
        }
        self.reads.store.remove(need);
        let azure = &mut self.world.azure;
        match need {
            Need::Subnet(subnet) => drop(azure.subnets.remove(subnet)),
            Need::PrivateLinks(group) => drop(azure.private_links.remove(group)),
            Need::PublicIps(group) => drop(azure.public_ips.remove(group)),
            _ => {}
        }
        if let Need::PrivateLinks(group) | Need::PublicIps(group) = need {
            azure.absent_groups.remove(group);
        }
        self.planning.dirty = true;
    }

    /// Whether a Service, planning or a write needs a subnet, or anything stands in it that was
    /// read.
    fn is_subnet_used(&self, need: &Need, subnet: &ResourceId) -> bool {
        let policy = &self.policy;
        let id = subnet.as_str();
        let is_it = |text: &str| {
            let text = text.trim();
            // Ids are made only for the few texts with which this one may end.
            let end = id.len().checked_sub(text.len()).and_then(|at| id.get(at..));
            let may_be = end.is_some_and(|end| end.eq_ignore_ascii_case(text)) || !text.is_ascii();
            may_be && policy.subnet_id(text) == *subnet
        };
        let names = |service: &Arc<Service>| service.annotations.values().any(|text| is_it(text));
        let services = self.world.kubernetes.services.values();
        let azure = &self.world.azure;
        let mut frontends = azure.balancers.each().flat_map(|balancer| &balancer.frontends);
        let stands = |frontend: &Frontend| match &frontend.address {
            FrontendAddress::Private { subnet: its, .. } => its == subnet,
            FrontendAddress::Public(_) | FrontendAddress::Other => false,
        };
        let links = azure.private_links.values().flat_map(Fact::each);
        let mut addresses = links.flat_map(|link| &link.addresses);
        self.planning.report.needs.contains(need)
            || is_it(&policy.subnet_name)
            || services.chain(self.reads.left.undecided()).any(names)
            || self.lanes.all.contains_key(subnet)
            || frontends.any(stands)
            || addresses.any(|address| address.subnet == *subnet)
    }

    /// Whether a Service, planning or a write needs the list of a group.
    fn is_used(&self, need: &Need, group: &Group) -> bool {
        let is_it = |text: &Arc<str>| {
            let same = text.trim().eq_ignore_ascii_case(group.as_str());
            same || (!text.is_ascii() && Group::new(text) == *group)
        };
        let names = |service: &Arc<Service>| service.annotations.values().any(is_it);
        let held = self.world.kubernetes.services.values();
        self.planning.report.needs.contains(need)
            || held.chain(self.reads.left.undecided()).any(names)
            || self.lanes.all.keys().any(|id| id.is_in(group))
            || self.holds_ours(group)
    }

    /// Whether anything of ours is in a group, or a load balancer stands on something in it.
    fn holds_ours(&self, group: &Group) -> bool {
        let azure = &self.world.azure;
        let own = Own::new(&self.world, &self.policy);
        let mut ips = azure.public_ips.get(group).into_iter().flat_map(Fact::each);
        let mut links = azure.private_links.get(group).into_iter().flat_map(Fact::each);
        let mut frontends = azure.balancers.each().flat_map(|balancer| &balancer.frontends);
        let stands = |frontend: &Frontend| match &frontend.address {
            FrontendAddress::Public(id) => id.is_in(group),
            FrontendAddress::Private { .. } | FrontendAddress::Other => false,
        };
        ips.any(|ip| own.public_ip(ip) == Whose::Ours)
            || links.any(|link| own.private_link(link) == Whose::Ours)
            || frontends.any(stands)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::reads::left::Source;
    use fixture::{policy, service};
    use std::collections::BTreeMap;

    #[test]
    fn the_list_of_a_group_that_nobody_names_any_more_is_forgotten_in_the_end() {
        let mut controller = Controller::new(policy(), Options::default());
        let (far, own) = (Group::new("far"), policy().group);
        for group in [&far, &own] {
            controller.read_now(Need::PublicIps(group.clone()));
            let none = Fact::Known(BTreeMap::new());
            controller.world.azure.public_ips.insert(group.clone(), none);
        }
        let service = service(&[("azure-load-balancer-resource-group", "Far")]);
        let uid = service.uid.clone();
        controller.world.kubernetes.services.insert(uid.clone(), Arc::new(service));
        let mut known_at = |now_ms: u64, named: bool| {
            if !named {
                controller.world.kubernetes.services.remove(&uid);
            }
            for group in [&far, &own] {
                controller.forget_unused(&Need::PublicIps(group.clone()), now_ms);
            }
            let lists = &controller.world.azure.public_ips;
            assert_eq!(lists.len(), controller.reads.store.len());
            (lists.contains_key(&far), lists.contains_key(&own))
        };
        assert_eq!(known_at(0, true), (true, true));
        assert_eq!(known_at(UNFOLLOWED_MS, true), (true, true));
        assert_eq!(known_at(UNFOLLOWED_MS + 1, false), (true, true));
        assert_eq!(known_at(2 * UNFOLLOWED_MS, false), (true, true));
        assert_eq!(known_at(2 * UNFOLLOWED_MS + 1, false), (false, true));
    }

    /// A tenant that names another subnet with each edit would have all of them read for ever.
    #[test]
    fn a_subnet_that_nobody_names_any_more_is_forgotten_in_the_end() {
        let mut controller = Controller::new(policy(), Options::default());
        let far = policy().subnet_id("far");
        let own = policy().subnet_id(&policy().subnet_name);
        for subnet in [&far, &own] {
            controller.read_now(Need::Subnet(subnet.clone()));
            controller.world.azure.subnets.insert(subnet.clone(), Fact::Known(None));
        }
        let service = service(&[("azure-load-balancer-internal-subnet", "Far")]);
        let uid = service.uid.clone();
        controller.world.kubernetes.services.insert(uid.clone(), Arc::new(service));
        let mut known_at = |now_ms: u64, named: bool| {
            if !named {
                controller.world.kubernetes.services.remove(&uid);
            }
            for subnet in [&far, &own] {
                controller.forget_unused(&Need::Subnet(subnet.clone()), now_ms);
            }
            let subnets = &controller.world.azure.subnets;
            assert_eq!(subnets.len(), controller.reads.store.len());
            (subnets.contains_key(&far), subnets.contains_key(&own))
        };
        assert_eq!(known_at(UNFOLLOWED_MS, true), (true, true));
        assert_eq!(known_at(UNFOLLOWED_MS + 1, false), (true, true));
        assert_eq!(known_at(2 * UNFOLLOWED_MS, false), (true, true));
        assert_eq!(known_at(2 * UNFOLLOWED_MS + 1, false), (false, true));
    }

    /// Azure answers no read for long.
    #[test]
    fn the_list_that_a_service_waits_for_which_is_gone_is_not_forgotten() {
        let mut controller = Controller::new(policy(), Options::default());
        let need = Need::PrivateLinks(Group::new("far"));
        controller.read_now(need.clone());
        let gone = service(&[("azure-pls-create", "true"), ("azure-pls-resource-group", "far")]);
        let names = plan::own::borne::of(&gone);
        controller.reads.left.put_off(Arc::new(gone), names, Source::Seen, 0);
        for now_ms in [0, UNFOLLOWED_MS] {
            controller.forget_unused(&need, now_ms);
        }
        assert!(controller.reads.store.contains_key(&need));
    }
}
