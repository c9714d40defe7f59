//! From which addresses load balancers of each kind are seen to lead to a Service.

use crate::ask::additional;
use crate::own::parts::Index;
use crate::own::pod_names;
use model::World;
use model::azure::{Frontend, FrontendAddress, Sku};
use model::kubernetes::{Backends, Ingress, Service};
use model::world::Need;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// What Azure shows of both kinds of load balancers.
pub(super) struct Led(Option<Index>);

impl Led {
    /// Looks at what has been read.
    pub fn of(world: &World) -> Self {
        let read = world.azure.is_known(&Need::Balancers);
        Self(read.then(|| {
            let mut index = Index::new();
            index.renew(world);
            index
        }))
    }

    /// Whether the former load balancer has to stay however much time has gone by: it still leads
    /// to the Service, and the new one is not seen to do so from each address that is told of it.
    /// Other clients may have taken its parts away.
    pub fn lacks(&self, service: &Service, home: Backends, told: &[Ingress]) -> bool {
        let Some(index) = &self.0 else { return true };
        let told = told.iter().filter_map(|entry| entry.ip.as_deref()?.parse().ok());
        let mut own = told.filter(|told| !is_additional(service, *told));
        let here = led(index, service, home);
        own.any(|told| !here.contains(&told)) && !led(index, service, home.other()).is_empty()
    }
}

/// The addresses of frontends that rules of a Service lead to.
fn led(index: &Index, service: &Service, backends: Backends) -> BTreeSet<IpAddr> {
    let base = service.uid.base_name();
    let of = |frontend: &Frontend| match &frontend.address {
        FrontendAddress::Public(id) => index.public_ip(id)?.address,
        FrontendAddress::Private { .. } | FrontendAddress::Other => frontend.private(),
    };
    let mut all = BTreeSet::new();
    for view in index.all() {
        let balancer = view.whole();
        match backends {
            Backends::Nodes if balancer.sku != Sku::Service => {
                all.extend(view.led_by(&base).into_iter().filter_map(of));
            }
            Backends::Pods if balancer.sku == Sku::Service => {
                if pod_names::is_of(balancer.id.name(), &service.uid) {
                    let used = balancer.frontends.iter().filter(|f| view.is_used(&f.name));
                    all.extend(used.filter_map(of));
                }
            }
            Backends::Nodes | Backends::Pods => {}
        }
    }
    all
}

/// Whether a Service's annotation lists an address beside its own.
pub(super) fn is_additional(service: &Service, address: IpAddr) -> bool {
    let listed = service.annotation(additional::KEY).unwrap_or_default();
    listed.split(',').any(|text| text.trim().parse() == Ok(address))
}
