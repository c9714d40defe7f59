//! Resources that Azure is changing without a write of this process: they are read again soon.

use crate::controller::Controller;
use model::azure::{FrontendAddress, LoadBalancer, Provisioning, PublicIp, Sku};
use model::world::Need;
use model::{Group, ResourceId};
use std::sync::Arc;

impl Controller {
    /// Lists with a resource that is being changed, but not by us.
    pub(crate) fn busy_needs(&self) -> Vec<Need> {
        let lanes = &self.lanes.all;
        let ours = |id: &ResourceId| lanes.get(id).is_some_and(|lane| lane.work.is_some());
        let azure = &self.world.azure;
        let busy = |state: Provisioning, id: &ResourceId| state == Provisioning::Busy && !ours(id);
        let mut needs = Vec::new();
        for (group, facts) in &azure.public_ips {
            let basic = |ip: &PublicIp| ip.sku == Sku::Basic;
            let later = |ip: &PublicIp| basic(ip) && (self.is_released(ip) || self.is_taken(ip));
            if facts.each().any(|r| busy(r.provisioning, &r.id) || later(r)) {
                needs.push(Need::PublicIps(group.clone()));
            }
        }
        if azure.balancers.each().any(|r| busy(r.provisioning, &r.id)) {
            needs.push(Need::Balancers);
        }
        if azure.nat_gateways.each().any(|r| busy(r.provisioning, &r.id)) {
            needs.push(Need::NatGateways);
        }
        let group = azure.security_group.known().and_then(Option::as_ref);
        if group.is_some_and(|r| busy(r.provisioning, &r.id)) {
            needs.push(Need::SecurityGroup);
        }
        needs
    }

    /// Lists with a resource that is being changed, but not by us, are read again soon.
    pub(crate) fn follow_busy(&mut self, now_ms: u64) {
        let needs = self.busy_needs();
        for (need, read) in &mut self.reads.store {
            if !needs.contains(need) {
                read.rest();
            }
        }
        for need in needs {
            self.reads.store.entry(need).or_default().follow(now_ms);
        }
    }

    /// Whether a public IP still names the frontend of a load balancer that has let it go.
    fn is_released(&self, ip: &PublicIp) -> bool {
        let Some(owner) = ip.user.as_ref().and_then(ResourceId::parent) else { return false };
        let ours =
            owner.is_in(&self.policy.balancer_group) && owner.folded().contains("/loadbalancers/");
        let Some(balancers) = self.world.azure.balancers.known().filter(|_| ours) else {
            return false;
        };
        let address = FrontendAddress::Public(ip.id.clone());
        let holds = |b: &Arc<LoadBalancer>| b.frontends.iter().any(|f| f.address == address);
        !balancers.get(&owner).is_some_and(holds)
    }

    /// Whether the frontend of a load balancer is on a public IP that does not show an address yet:
    /// Azure allocates a dynamic one when it is taken.
    fn is_taken(&self, ip: &PublicIp) -> bool {
        let address = FrontendAddress::Public(ip.id.clone());
        let takes = |b: &Arc<LoadBalancer>| b.frontends.iter().any(|f| f.address == address);
        ip.address.is_none() && self.world.azure.balancers.each().any(takes)
    }

    /// A load balancer is gone: Basic addresses that were on it can now be raised.
    pub(crate) fn look_at_released(&mut self) {
        let facts = self.world.azure.public_ips.iter();
        let released = |ip: &Arc<PublicIp>| ip.sku == Sku::Basic && self.is_released(ip);
        let groups = facts.filter(|(_, all)| all.each().any(released));
        let groups: Vec<Group> = groups.map(|(group, _)| group.clone()).collect();
        groups.into_iter().for_each(|group| self.read_now(Need::PublicIps(group)));
    }
}
