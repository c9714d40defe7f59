//! Pods that leave through a NAT gateway of their own: one gateway for each value of their label,
//! which is that of one namespace, or of those that the cloud config lists. There are as many as
//! the cloud config allows. A gateway is made for a Pod with an address, and stays for any living
//! Pod that asks for it: where all its Pods are replaced at once, the new ones have no address yet
//! when the old ones go, and the gateway's own addresses must not change for that.

use super::egress_members::{Members, Record, members};
use super::registry::Registry;
use super::{obstacles, public_ip, until};
use crate::draft::Draft;
use crate::own::name::folded;
use crate::own::pod_names;
use crate::own::tags;
use crate::pods::table::DiffTracker;
use model::azure::{NatGateway, Provisioning, PublicIp, Rest, Sku};
use model::gateway::{DefaultService, Direction, GatewayService};
use model::plan::{Change, Resource};
use model::report::{Until, Wait};
use model::{Family, ResourceId, ServiceUid};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Egress gateways that have, or are to have, anything in Azure.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// Gateways that no Pod wants and of which something is left.
    pub leaving: BTreeSet<Arc<str>>,
    /// Gateways that only Pods which do not want them any more are marked for: whoever wants them
    /// has yet to be.
    pub awaiting_successor: BTreeSet<Arc<str>>,
    /// Gateways of which nothing stands, and whose Pods another process may have let go: our
    /// finalizer is put on them again before anything is made.
    pub unconfirmed: BTreeSet<Arc<str>>,
    /// Gateways whose name stands for something else in Azure.
    pub taken: BTreeSet<Arc<str>>,
    /// Gateways of which nothing stands, and for which there is no room.
    pub full: BTreeSet<Arc<str>>,
    /// Gateways that stand and are wanted: a Pod that asks for one is marked before it has an
    /// address, so that the Pods before it can be let go.
    pub staying: BTreeSet<Arc<str>>,
}

pub(super) fn plan(
    draft: &mut Draft<'_>,
    registry: &mut Registry,
    tracker: &DiffTracker,
    uids: &BTreeMap<Arc<str>, ServiceUid>,
) -> Groups {
    let members = members(draft, tracker, uids);
    let others = pod_names::nats_of_others(&draft.world.azure);
    let candidates = candidates(draft, &members, &others);
    let full = full(draft, &members, &candidates);
    let mut groups = Groups { full, ..Groups::default() };
    for name in candidates {
        let gateway = Gateway::find(draft, &name);
        let wish = members.get(&name);
        if gateway.is_others(draft, &others) || gateway.is_taken(draft, wish) {
            groups.taken.insert(name);
            continue;
        }
        let exists = gateway.nat.is_some() || gateway.entry.is_some();
        let wanted = wish.is_some_and(|m| m.addressed || (m.asked && exists))
            && !groups.full.contains(&name);
        if wanted {
            if exists {
                groups.staying.insert(Arc::clone(&name));
            }
            if wish.is_some_and(|m| m.marked && !m.alive) {
                groups.awaiting_successor.insert(Arc::clone(&name));
            }
            let registered = gateway.entry.is_some();
            let record = wish.map_or(Record::Missing, |m| m.record(registered));
            if record == Record::Unconfirmed && gateway.nat.is_none() {
                groups.unconfirmed.insert(Arc::clone(&name));
            }
            arrive(draft, registry, &gateway, record);
        } else if (exists || wish.is_some_and(|m| m.marked))
            && leave(draft, registry, &gateway, tracker)
        {
            groups.leaving.insert(name);
        }
    }
    groups
}

/// Gateways that are wanted anew and for which there is no room. Those that stand stay; of the
/// others the next is one that Pods are marked for, then one of the namespace that has fewest.
fn full(
    draft: &Draft<'_>,
    members: &BTreeMap<Arc<str>, Members>,
    candidates: &BTreeSet<Arc<str>>,
) -> BTreeSet<Arc<str>> {
    let mut room = usize::try_from(draft.policy.tenancy.most_egress).unwrap_or(usize::MAX);
    let mut had: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
    let mut coming: Vec<(bool, &Arc<str>, &Arc<str>)> = Vec::new();
    for name in candidates {
        let wish = members.get(name);
        let namespace = wish.and_then(|wish| wish.namespace.as_ref());
        let gateway = Gateway::find(draft, name);
        if gateway.nat.is_some() || gateway.entry.is_some() || gateway.is_in_flight(draft) {
            room = room.saturating_sub(1);
            namespace.into_iter().for_each(|of| *had.entry(of).or_default() += 1);
        } else if let (Some(wish), Some(namespace)) = (wish.filter(|w| w.addressed), namespace) {
            coming.push((!wish.marked, namespace, name));
        }
    }
    while room > 0 && !coming.is_empty() {
        let count = |namespace: &Arc<str>| had.get(namespace).copied().unwrap_or(0);
        let rank = |at: &usize| {
            let (new, namespace, name) = coming[*at];
            (new, count(namespace), name)
        };
        let Some(at) = (0..coming.len()).min_by_key(rank) else { break };
        let (_, namespace, _) = coming.remove(at);
        *had.entry(namespace).or_default() += 1;
        room -= 1;
    }
    coming.into_iter().map(|(_, _, name)| Arc::clone(name)).collect()
}

/// Names that Pods ask for, that are registered, or that a NAT gateway of ours has.
fn candidates(
    draft: &Draft<'_>,
    members: &BTreeMap<Arc<str>, Members>,
    others: &BTreeSet<&ResourceId>,
) -> BTreeSet<Arc<str>> {
    let services = draft.world.azure.gateway_services.known();
    let registered = services.into_iter().flatten().filter(|(_, service)| {
        service.direction == Direction::Outbound && !pod_names::is_foreign(service)
    });
    let gateway = draft.policy.gateway_id();
    let nats = draft.world.azure.nat_gateways.known().into_iter().flatten();
    let ours =
        nats.filter(|(id, nat)| nat.gateway.as_ref() == Some(&gateway) && !others.contains(id));
    let named = ours.map(|(id, _)| Arc::from(folded(id.name())));
    members
        .keys()
        .cloned()
        .chain(registered.map(|(name, _)| Arc::clone(name)))
        .chain(
            named.filter(|name: &Arc<str>| {
                pod_names::is_egress(name) && !pod_names::is_reserved(name)
            }),
        )
        .collect()
}

/// One egress gateway and what there is of it.
struct Gateway {
    name: Arc<str>,
    cause: ServiceUid,
    id: ResourceId,
    nat: Option<Arc<NatGateway>>,
    entry: Option<Arc<GatewayService>>,
    ips: [(ResourceId, Family); 2],
}

impl Groups {
    /// Whether a Pod's mark for a gateway is all that says whose it is.
    pub fn needs_mark(&self, name: &str) -> bool {
        self.leaving.contains(name) || self.awaiting_successor.contains(name)
    }
}

impl Gateway {
    fn find(draft: &Draft<'_>, name: &Arc<str>) -> Self {
        let group = &draft.policy.group;
        let ip = |name: String| draft.policy.public_ip_id(group, &name);
        Self {
            name: Arc::clone(name),
            cause: ServiceUid::new(name),
            id: draft.nat_id(name),
            nat: draft.nat(name).cloned(),
            entry: draft.registered(name).filter(|e| !pod_names::is_foreign(e)).cloned(),
            ips: [
                (ip(pod_names::public_ip(name)), Family::V4),
                (ip(pod_names::public_ip_v6(name)), Family::V6),
            ],
        }
    }

    /// Whether a gateway service of others has the name or leads to the NAT gateway. Registered for
    /// Pods, it would be changed, and deleted after the last of them.
    fn is_others(&self, draft: &Draft<'_>, others: &BTreeSet<&ResourceId>) -> bool {
        let named = draft.registered(&self.name).is_some();
        self.entry.is_none() && (named || others.contains(&self.id))
    }

    /// Whether something that is not ours has the name. Of a public IP that stands without a NAT
    /// gateway and a registration only Pods say that it is: they are marked before it is made.
    fn is_taken(&self, draft: &Draft<'_>, wish: Option<&Members>) -> bool {
        let foreign_nat = self.nat.as_ref().is_some_and(|nat| {
            nat.gateway.as_ref() != Some(&draft.policy.gateway_id()) && self.entry.is_none()
        });
        let unmarked = !wish.is_some_and(|m| m.marked);
        // A list from before the NAT gateway was deleted shows it as the user still.
        let used = |ip: &PublicIp| ip.user.as_ref().is_some_and(|user| *user != self.id);
        let foreign = |(id, family): &(ResourceId, Family)| {
            draft.public_ip(id).is_some_and(|ip| {
                unmarked || ip.sku != Sku::StandardV2 || ip.family != *family || used(ip)
            })
        };
        let foreign_ip =
            self.nat.is_none() && !self.is_in_flight(draft) && self.ips.iter().any(foreign);
        let nat_tags = self.nat.as_ref().and_then(|nat| nat.tags.as_ref());
        if draft.own.is_another_clusters(nat_tags) {
            return true;
        }
        let inbound = self.entry.as_ref().is_some_and(|e| e.direction != Direction::Outbound);
        inbound || foreign_nat || (foreign_ip && self.entry.is_none())
    }

    /// Public IPs that the NAT gateway is to have and has not. Another client removed them, or no
    /// node had IPv6 when the gateway was made. A foreign public IP of such a name is not attached.
    fn lacking(&self, draft: &Draft<'_>, nat: &NatGateway) -> Vec<&(ResourceId, Family)> {
        let usable = |id: &ResourceId, family: Family| {
            draft.public_ip(id).is_none_or(|ip| {
                public_ip::is_ours(draft, ip)
                    && ip.family == family
                    && ip.user.as_ref().is_none_or(|user| *user == self.id)
            })
        };
        let lacks = |(id, family): &&(ResourceId, Family)| {
            let lacks = match family {
                Family::V4 => !nat.public_ips.contains(id),
                Family::V6 => nat.public_ips_v6.is_empty() && has_ipv6(draft),
            };
            lacks && usable(id, *family)
        };
        let ips = self.ips.iter().filter(|_| nat.sku == Sku::StandardV2);
        ips.filter(lacks).collect()
    }

    fn is_in_flight(&self, draft: &Draft<'_>) -> bool {
        draft.is_in_flight(&self.id) || self.ips.iter().any(|(id, _)| draft.is_in_flight(id))
    }

    fn is_late(&self, draft: &Draft<'_>) -> bool {
        draft.is_late(&self.id) || self.ips.iter().any(|(id, _)| draft.is_late(id))
    }

    fn entry(&self, nat_gateway: Option<ResourceId>) -> GatewayService {
        GatewayService {
            name: self
                .entry
                .as_ref()
                .map_or_else(|| Arc::clone(&self.name), |e| Arc::clone(&e.name)),
            direction: Direction::Outbound,
            default: DefaultService::No,
            pools: BTreeSet::new(),
            nat_gateway,
        }
    }

    fn put_nat(&self, draft: &mut Draft<'_>, after: NatGateway, waits: Vec<Wait>) {
        let before = self.nat.clone().map(Resource::NatGateway);
        let (after, causes) =
            (Resource::NatGateway(Arc::new(after)), BTreeSet::from([self.cause.clone()]));
        let put = Change::put(before, after, causes, waits);
        draft.change(Change { target: self.id.clone(), ..put });
    }
}

/// A cluster whose nodes have IPv6 addresses.
fn has_ipv6(draft: &Draft<'_>) -> bool {
    let nodes = draft.world.kubernetes.nodes.values();
    nodes.flat_map(|node| &node.addresses).any(|address| address.to_canonical().is_ipv6())
}

fn arrive(draft: &mut Draft<'_>, registry: &mut Registry, gateway: &Gateway, record: Record) {
    let held = draft.hold(&gateway.cause);
    let comes = record == Record::ToRegister;
    if held.is_some_and(|hold| comes || hold.target != pod_names::locations_table(draft.policy)) {
        return;
    }
    let gateway_id = draft.policy.gateway_id();
    if let Some(nat) = &gateway.nat {
        keep_ips(draft, gateway, nat);
    }
    match &gateway.nat {
        None => {
            let table = pod_names::services_table(draft.policy);
            let waits = match record {
                Record::There => Vec::new(),
                Record::Missing | Record::Unconfirmed => vec![Wait::Finalizer],
                Record::ToRegister => vec![until(&table, Until::Written)],
            };
            make(draft, gateway, waits);
            if comes {
                registry.put(&gateway.cause, gateway.entry(None), None);
                return;
            }
        }
        Some(nat)
            if nat.gateway.is_none()
                || nat.provisioning == Provisioning::Failed
                || tags::configured(nat.tags.as_ref(), draft.policy) != nat.tags =>
        {
            let after = NatGateway {
                gateway: Some(gateway_id),
                provisioning: Provisioning::Succeeded,
                tags: tags::configured(nat.tags.as_ref(), draft.policy),
                ..NatGateway::clone(nat)
            };
            gateway.put_nat(draft, after, Vec::new());
        }
        Some(nat) => add_ips(draft, gateway, nat),
    }
    let wanted = gateway.entry(Some(gateway.id.clone()));
    if gateway.entry.as_deref() == Some(&wanted) {
        return;
    }
    let attached = gateway.nat.as_ref().is_some_and(|nat| nat.gateway.is_some());
    if attached && !gateway.is_in_flight(draft) {
        if held.is_none() {
            registry.put(&gateway.cause, wanted, None);
        }
    } else if !gateway.is_late(draft) {
        registry.expect(&gateway.cause);
    }
}

/// Public IPs of a NAT gateway that stands are as those of a new one: with the tags of the config,
/// and none of them failed.
fn keep_ips(draft: &mut Draft<'_>, gateway: &Gateway, nat: &NatGateway) {
    for (id, family) in &gateway.ips {
        let mut used = nat.public_ips.iter().chain(&nat.public_ips_v6);
        let ours = draft.public_ip(id).is_some_and(|ip| public_ip::is_ours(draft, ip));
        if ours && used.any(|used| used == id) {
            public_ip::ensure(draft, &gateway.cause, id, *family, Vec::new());
        }
    }
}

/// Gives a NAT gateway the public IPs that it lacks, beside those that it has.
fn add_ips(draft: &mut Draft<'_>, gateway: &Gateway, nat: &NatGateway) {
    let lacking = gateway.lacking(draft, nat);
    if lacking.is_empty() {
        return;
    }
    let (mut after, mut waits) = (NatGateway::clone(nat), Vec::new());
    for (id, family) in lacking {
        public_ip::ensure(draft, &gateway.cause, id, *family, Vec::new());
        if !public_ip::is_ready(draft, id) {
            waits.push(until(id, Until::Ready));
        }
        match family {
            Family::V4 => after.public_ips.push(id.clone()),
            Family::V6 => after.public_ips_v6.push(id.clone()),
        }
    }
    gateway.put_nat(draft, after, waits);
}

/// Makes the NAT gateway. IPv6 may come later, with the first node that has it.
fn make(draft: &mut Draft<'_>, gateway: &Gateway, mut waits: Vec<Wait>) {
    let both = has_ipv6(draft);
    let mut ids: BTreeMap<Family, Vec<ResourceId>> = BTreeMap::new();
    // One after the other, IPv4 first: the addresses come in a known order.
    let mut before = waits.clone();
    for (id, family) in &gateway.ips {
        if *family == Family::V6 && !both {
            continue;
        }
        public_ip::ensure(draft, &gateway.cause, id, *family, before.clone());
        if !public_ip::is_ready(draft, id) {
            waits.push(until(id, Until::Ready));
            before.push(until(id, Until::Ready));
        }
        ids.entry(*family).or_default().push(id.clone());
    }
    let nat = NatGateway {
        id: gateway.id.clone(),
        etag: None,
        location: Arc::clone(&draft.policy.location),
        tags: tags::configured(None, draft.policy),
        sku: Sku::StandardV2,
        gateway: Some(draft.policy.gateway_id()),
        public_ips: ids.remove(&Family::V4).unwrap_or_default(),
        public_ips_v6: ids.remove(&Family::V6).unwrap_or_default(),
        provisioning: Provisioning::Succeeded,
        rest: Rest::default(),
    };
    gateway.put_nat(draft, nat, waits);
}

/// Takes a gateway down; says whether anything is left of it.
fn leave(
    draft: &mut Draft<'_>,
    registry: &mut Registry,
    gateway: &Gateway,
    tracker: &DiffTracker,
) -> bool {
    let table = pod_names::services_table(draft.policy);
    let mut waits = obstacles(draft, tracker, &gateway.name, &gateway.cause);
    let attached = gateway.entry.as_ref().is_some_and(|e| e.nat_gateway.is_some());
    let unmarked = gateway.entry.is_none() && gateway.nat.is_some();
    if attached || unmarked {
        // Without a registration nothing would say, once it is detached, that it is ours.
        if waits.is_empty() && !(unmarked && draft.is_in_flight(&gateway.id)) {
            registry.put(&gateway.cause, gateway.entry(None), None);
        }
        waits.push(until(&table, Until::Released));
    }
    if let Some(nat) = &gateway.nat {
        if nat.gateway.is_some() {
            let after = NatGateway { gateway: None, ..NatGateway::clone(nat) };
            gateway.put_nat(draft, after, waits.clone());
        } else {
            let before = Resource::NatGateway(Arc::clone(nat));
            let causes = BTreeSet::from([gateway.cause.clone()]);
            let delete = Change::delete(before, causes, waits.clone());
            draft.change(Change { target: gateway.id.clone(), ..delete });
        }
        waits.push(until(&gateway.id, Until::Gone));
    } else if draft.is_in_flight(&gateway.id) {
        waits.push(Wait::Writing(gateway.id.clone()));
    }
    let mut left = !waits.is_empty();
    for (id, _) in &gateway.ips {
        left |= draft.is_in_flight(id);
        left |= public_ip::release(draft, &gateway.cause, id, waits.clone());
    }
    // What the lists do not show may be there all the same.
    left |= draft.world.inherited.contains(&gateway.cause);
    if let Some(entry) = &gateway.entry {
        if !left {
            registry.delete(&gateway.cause, &entry.name, Direction::Outbound);
        } else if !gateway.is_late(draft) {
            registry.expect(&gateway.cause);
        }
        left = true;
    }
    left
}
