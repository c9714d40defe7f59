//! What is written to Kubernetes.

use super::{Breach, Lint};
use model::ResourceId;
use model::azure::{FrontendAddress, LoadBalancer};
use model::kubernetes::{
    GATEWAY_FINALIZER, Ingress, POD_FINALIZER, SERVICE_FINALIZER, Service, Wish,
};
use model::plan::{Edit, FinalizerPurpose, KubernetesWrite, Object};
use plan::ask::annotation::PREFIX;
use plan::own::{self, Whose, tags};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

const OURS: [&str; 3] = [SERVICE_FINALIZER, GATEWAY_FINALIZER, POD_FINALIZER];

impl Lint<'_> {
    /// Finalizers last as long as what they guard; status tells the truth.
    pub(super) fn writes(&mut self) {
        let (plan, world) = (self.plan, self.world);
        let mut seen = BTreeSet::new();
        for KubernetesWrite { object, edit } in &plan.writes {
            let field = match edit {
                Edit::Finalizers { .. } => "finalizers",
                Edit::Status { .. } => "status",
                Edit::Gate { .. } => "readiness gate",
            };
            let (target, service) = match object {
                Object::Service { name, uid } => {
                    (format!("Service {name}"), world.kubernetes.services.get(uid))
                }
                Object::Pod { name, .. } => (format!("Pod {name}"), None),
            };
            if !seen.insert((object, field)) {
                self.say(Breach::TargetTwice, &target, field);
            }
            let is_service = matches!(object, Object::Service { .. });
            let Some(service) = service else {
                if is_service {
                    self.say(Breach::Stale, &target, "the World has no such Service");
                }
                continue;
            };
            match edit {
                Edit::Finalizers { list, revision: _, purpose, marks: _ } => {
                    self.finalizer_list(&target, service, list);
                    match purpose {
                        FinalizerPurpose::Claim => {}
                        FinalizerPurpose::Release => self.release(&target, service),
                        FinalizerPurpose::Moved => self.moved(&target, service),
                    }
                }
                Edit::Status { ingress, condition: _, moving: _ } => {
                    let list = ingress.as_deref().unwrap_or_default();
                    self.ingress(&target, service, list);
                }
                Edit::Gate { .. } => self.say(Breach::Stale, &target, "a Service has no gates"),
            }
        }
    }

    fn finalizer_list(&mut self, target: &str, service: &Service, list: &[Arc<str>]) {
        let others = |list: &[Arc<str>]| -> Vec<Arc<str>> {
            list.iter().filter(|f| !OURS.contains(&f.as_ref())).cloned().collect()
        };
        if others(list) != others(&service.finalizers) {
            self.say(Breach::FinalizerForeign, target, format!("{list:?}"));
        }
    }

    fn release(&mut self, target: &str, service: &Service) {
        if let Some(trace) = self.trace(service) {
            self.say(Breach::FinalizerEarly, target, trace);
        } else if self.is_planned(&service.uid, FinalizerPurpose::Release) {
            self.say(Breach::FinalizerEarly, target, "something of it is being written");
        }
        if service.wish == Wish::LoadBalancer {
            self.say(Breach::FinalizerEarly, target, "it wants a load balancer");
        }
    }

    /// A Service that moved to nodes has nothing of its container load balancer left.
    fn moved(&mut self, target: &str, service: &Service) {
        if let Some(balancer) = self.balancer(&self.policy.balancer_id(service.uid.as_str())) {
            let detail = format!("load balancer {}", balancer.id.name());
            self.say(Breach::FinalizerEarly, target, detail);
        }
        if let Some(entry) = self.registration(service) {
            self.say(Breach::FinalizerEarly, target, entry);
        }
    }

    fn registration(&self, service: &Service) -> Option<String> {
        let services = self.world.azure.gateway_services.known()?;
        let entry = services.get(service.uid.as_str().to_lowercase().as_str())?;
        Some(format!("gateway service {}", entry.name))
    }

    /// Something of a Service that is still in Azure.
    pub(super) fn trace(&self, service: &Service) -> Option<String> {
        let azure = &self.world.azure;
        let base = service.uid.base_name();
        for balancer in azure.balancers.each() {
            if let Some(part) = part_of(balancer, &base) {
                return Some(part);
            }
            if balancer.id.name().eq_ignore_ascii_case(service.uid.as_str()) {
                return Some(format!("load balancer {}", balancer.id.name()));
            }
        }
        let name = service.name.to_string();
        for ip in own::public_ips(self.world) {
            let mut users = tags::users(ip).into_iter();
            let here = self.own.public_ip(ip) == Whose::Ours && !self.is_under_unknown(&ip.id);
            if here && users.any(|user| user.eq_ignore_ascii_case(&name)) {
                return Some(format!("public IP {}", ip.id.name()));
            }
        }
        self.registration(service)
    }

    /// Whether a frontend stands on a public IP that belongs to no Service known here: of one that
    /// had the same name before, say, whose finalizer somebody took off. Nothing of it is taken
    /// away, so no Service waits for it.
    fn is_under_unknown(&self, ip: &ResourceId) -> bool {
        let frontends = self.world.azure.balancers.each().flat_map(|b| &b.frontends);
        let mut on =
            frontends.filter(|f| matches!(&f.address, FrontendAddress::Public(id) if id == ip));
        on.any(|f| !self.is_ours(&f.name))
    }

    /// Each address stands in Azure, is one that was asked for beside, or was shown before.
    fn ingress(&mut self, target: &str, service: &Service, list: &[Ingress]) {
        let mut known = self.standing();
        let key = format!("{PREFIX}azure-additional-public-ips");
        let additional = service.annotations.get(key.as_str());
        let additional = additional.into_iter().flat_map(|text| text.split(','));
        known.extend(additional.filter_map(|ip| ip.trim().parse::<IpAddr>().ok()));
        for ip in list.iter().filter(|i| !service.ingress.contains(i)).map(|i| &i.ip) {
            let address = ip.as_ref().and_then(|ip| ip.parse::<IpAddr>().ok());
            if address.is_none_or(|address| !known.contains(&address)) {
                self.say(Breach::StatusUntrue, target, format!("{ip:?} does not stand"));
            }
        }
    }

    /// Addresses of all frontends in Azure.
    pub(super) fn standing(&self) -> BTreeSet<IpAddr> {
        let frontends = self.world.azure.balancers.each().flat_map(|b| &b.frontends);
        frontends.filter_map(|f| self.address(&f.address)).collect()
    }

    /// The address that clients of a frontend use.
    pub(super) fn address(&self, address: &FrontendAddress) -> Option<IpAddr> {
        match address {
            FrontendAddress::Public(id) => self.public_ip(id)?.address,
            FrontendAddress::Private { address, .. } => *address,
            FrontendAddress::Other => None,
        }
    }
}

/// A part of this base name on a load balancer that no other Service's rules need.
fn part_of(balancer: &LoadBalancer, base: &str) -> Option<String> {
    let own = |part: &str| own::name::is_of(part, base);
    let is_shared = |name: &str| {
        let id = balancer.id.child("frontendIPConfigurations", name);
        balancer.rules.iter().any(|r| !own(&r.name) && r.frontend.as_ref() == Some(&id))
            || balancer.foreign.iter().any(|f| f.frontends.contains(&id))
    };
    let frontends = balancer.frontends.iter().map(|f| &f.name).filter(|name| !is_shared(name));
    let mut parts = balancer.rules.iter().map(|r| &r.name).chain(frontends);
    parts.find(|name| own(name)).map(|name| format!("{name} on {}", balancer.id.name()))
}
