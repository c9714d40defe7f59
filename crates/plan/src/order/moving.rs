//! Addresses between two load balancers: let go by one, not yet on the other.

use crate::ask::Intent;
use crate::claim::placement::Placement;
use crate::draft::Draft;
use crate::own::name;
use crate::shape::frontend;
use crate::shape::public_ip::Chosen;
use model::world::Fact;
use model::{Exposure, Family};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The addresses of a Service that keep their rules and their place in the status although no
/// frontend of its load balancer has them (now): they are on the way to it.
pub(crate) fn addresses(
    draft: &Draft<'_>,
    placement: &Placement,
    chosen: &Chosen,
    intent: &Intent,
    standing: &BTreeMap<Family, IpAddr>,
) -> BTreeMap<Family, IpAddr> {
    let seated = placement.balancers.values().any(|s| s.has(&intent.uid));
    let missing = intent.families.iter().filter(|f| seated && !standing.contains_key(*f));
    missing
        .filter_map(|&family| {
            let address = match intent.exposure {
                Exposure::Public => public(draft, chosen, intent, family),
                Exposure::Internal => internal(draft, intent, family),
            }?;
            let ingress = &draft.cases.get(&intent.uid)?.service.ingress;
            let text = address.to_string();
            let shown = ingress.iter().any(|i| i.ip.as_deref() == Some(text.as_str()));
            shown.then_some((family, address))
        })
        .collect()
}

fn public(draft: &Draft<'_>, chosen: &Chosen, intent: &Intent, family: Family) -> Option<IpAddr> {
    draft.public_ip(chosen.get(&(intent.uid.clone(), family))?)?.address
}

/// The address of its frontend on another load balancer; the one in its status where it has none
/// anywhere.
fn internal(draft: &Draft<'_>, intent: &Intent, family: Family) -> Option<IpAddr> {
    let expected = name::frontend(intent, family);
    let all =
        || draft.balancers().into_iter().flat_map(BTreeMap::values).flat_map(|b| &b.frontends);
    if let Some(own) = all().find(|f| f.name.eq_ignore_ascii_case(&expected)) {
        return frontend::private(own);
    }
    let own = |name: &str| name::is_of(name, &intent.base);
    if all().any(|f| own(&f.name)) {
        return None;
    }
    let address = frontend::status(draft, intent, family)?;
    let facts = draft.world.azure.public_ips.values().filter_map(Fact::known);
    let mut public = facts.flat_map(BTreeMap::values).filter_map(|ip| ip.address);
    let pinned = intent.pinned.get(&family).is_none_or(|pinned| *pinned == address);
    (pinned && !public.any(|a| a == address)).then_some(address)
}
