//! What is written to Kubernetes: finalizers, addresses and conditions.

use crate::ask::Intent;
use crate::ask::public_ip::named_group;
use crate::claim::choice::Chosen;
use crate::claim::placement::Placement;
use crate::draft::{Draft, Stance};
use crate::order::moving;
use crate::own::{finalizers, is_claimed};
use crate::shape::security_group::Standings;
use crate::shape::security_group::standing::{Standing, missing};
use crate::shape::{member, security_group};
use crate::standing::public_ip::is_unaddressed;
use crate::standing::{frontend, private_link};
use model::azure::{Provisioning, PublicIp};
use model::kubernetes::{
    Deletion, GATEWAY_FINALIZER, Ingress, LoadBalancerType, SERVICE_FINALIZER, Service,
};
use model::plan::{ConditionEdit, Edit, FinalizerPurpose, KubernetesWrite, MoveEdit, Object};
use model::report::{Until, Wait};
use model::world::{ById, Fact, Need};
use model::{Family, Policy, ResourceId, ServiceUid, World};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// The Service as the object of a write.
pub(crate) fn object(service: &Service) -> Object {
    Object::Service { name: service.name.clone(), uid: service.uid.clone() }
}

/// The write of a Service's status, in which nothing is said about a move. What the condition says
/// beside addresses is added once all is planned.
pub(crate) fn status(
    service: &Service,
    ingress: Option<Vec<Ingress>>,
    condition: ConditionEdit,
) -> KubernetesWrite {
    let edit = Edit::Status { ingress, condition, moving: MoveEdit::Keep };
    KubernetesWrite { object: object(service), edit }
}

/// The write of a Service's finalizers.
fn finalizers_write(
    service: &Service,
    list: Vec<Arc<str>>,
    purpose: FinalizerPurpose,
) -> KubernetesWrite {
    let revision = Arc::clone(&service.revision);
    let edit = Edit::Finalizers { list, revision, purpose, marks: None };
    KubernetesWrite { object: object(service), edit }
}

/// Asks for the finalizers of every Service that wants a load balancer and has none yet, or has
/// them only as far as is seen.
pub(crate) fn claim(draft: &mut Draft<'_>) {
    let mut writes = Vec::new();
    for case in draft.cases.values() {
        let wanted = matches!(case.stance, Stance::Wanted(_) | Stance::Container(_));
        let certain = !draft.claims.unconfirmed.contains(&case.service.uid);
        if !wanted || (certain && is_claimed(draft.policy, case.service)) {
            continue;
        }
        let mut list = case.service.finalizers.clone();
        for finalizer in finalizers(draft.policy) {
            if !case.service.has_finalizer(finalizer) {
                list.push(Arc::from(*finalizer));
            }
        }
        writes.push(finalizers_write(case.service, list, FinalizerPurpose::Claim));
    }
    draft.steps.writes.extend(writes);
}

/// Takes the finalizer of container load balancers off Services that have moved to nodes.
pub(crate) fn shed(draft: &mut Draft<'_>) {
    let sure = |uid: &ServiceUid| !draft.claims.unconfirmed.contains(uid);
    let wanted = draft.cases.values().filter(|case| case.intent().is_some());
    let wanted = wanted.filter(|case| sure(&case.service.uid));
    let moved = wanted.filter(|case| case.service.has_finalizer(GATEWAY_FINALIZER));
    let write = |service: &Service| {
        let mut list = service.finalizers.clone();
        list.retain(|f| **f != *GATEWAY_FINALIZER);
        finalizers_write(service, list, FinalizerPurpose::Moved)
    };
    let writes: Vec<KubernetesWrite> = moved.map(|case| write(case.service)).collect();
    draft.steps.writes.extend(writes);
}

/// Writes addresses of Services that are programmed, and takes finalizers off those of which
/// nothing is left.
pub(crate) fn conclude(
    draft: &mut Draft<'_>,
    placement: &Placement,
    chosen: &Chosen,
    standings: &Standings<'_>,
) {
    let none = BTreeMap::new();
    let uids: Vec<ServiceUid> = draft.cases.keys().cloned().collect();
    for uid in uids {
        match draft.cases[&uid].stance.clone() {
            Stance::Wanted(intent) => {
                let standing = standings.get(&uid).unwrap_or(&none);
                address(draft, placement, chosen, (&intent, standing));
            }
            Stance::Leaving => release(draft, placement, &uid),
            Stance::Frozen(_) => stay(draft, placement, &uid),
            Stance::Container(_) => {}
        }
    }
}

fn address(
    draft: &mut Draft<'_>,
    placement: &Placement,
    chosen: &Chosen,
    (intent, standing): (&Intent, &BTreeMap<Family, Standing<'_>>),
) {
    let missing = missing(intent, standing);
    let moving = moving::addresses(draft, placement, chosen, intent, &missing);
    let moving: BTreeSet<String> = moving.values().map(ToString::to_string).collect();
    let own: Vec<&Standing<'_>> = intent.families.iter().filter_map(|f| standing.get(f)).collect();
    // An additional address may be its own.
    let is_own = |address: &IpAddr| own.iter().any(|at| at.address == *address);
    let more = intent.additional.iter().filter(|address| !is_own(address));
    let more = more.map(|address| Arc::<str>::from(address.to_string()));
    let all: Vec<Arc<str>> = own.iter().map(|at| Arc::clone(&at.text)).chain(more).collect();
    let complete = standing.len() == intent.families.len();
    // What is known of a resource that is being written for it is about to be otherwise, also
    // where nothing is left to change because its owner went back to an earlier wish.
    let sent = draft.world.in_flight.iter().filter(|(_, f)| f.causes.contains(&intent.uid));
    let sent: Vec<Wait> = sent.map(|(id, _)| Wait::Writing(id.clone())).collect();
    let unsure = unsure(draft, placement, intent, &all);
    // A dynamic address comes a little later than the frontend.
    let ips = intent.families.iter().filter_map(|f| chosen.get(&(intent.uid.clone(), *f)));
    let later = ips.filter(|id| draft.public_ip(id).is_some_and(|ip| is_unaddressed(ip)));
    let later: Vec<Wait> =
        later.map(|id| Wait::Resource { id: id.clone(), until: Until::Ready }).collect();
    let inherited = draft.world.inherited.contains(&intent.uid);
    let Some(case) = draft.cases.get_mut(&intent.uid) else { return };
    case.waits.extend(sent.into_iter().chain(unsure).chain(later));
    case.addresses.clone_from(&all);
    let list: Vec<Ingress> = if complete && case.waits.is_empty() {
        all.into_iter().map(|ip| Ingress { ip: Some(ip), hostname: None }).collect()
    } else {
        // Until all is done only what no longer stands goes; what is on its way to another load
        // balancer comes back, and the status is what remembers it.
        let known = |ip: &Arc<str>| all.contains(ip) || moving.contains(&**ip);
        let stands = |i: &&Ingress| i.ip.as_ref().is_none_or(known);
        case.service.ingress.iter().filter(stands).cloned().collect()
    };
    if inherited && drops(&list, &case.service.ingress) {
        case.waits.insert(Wait::Listing);
    } else if !is_same(&list, &case.service.ingress) {
        let write = status(case.service, Some(list), ConditionEdit::Keep);
        case.waits.insert(Wait::Status);
        draft.steps.writes.push(write);
    }
}

/// Whether a status would lose an entry. It loses none of a Service of another process's before
/// lists are certain to show all that process wrote: until then a frontend or a security rule that
/// no list shows may stand.
pub(crate) fn drops(wanted: &[Ingress], found: &[Ingress]) -> bool {
    found.iter().any(|entry| !wanted.contains(entry))
}

/// Whether a status tells the same addresses. Their order means nothing: the one that is found
/// stays, which another controller may have written.
pub(crate) fn is_same(wanted: &[Ingress], found: &[Ingress]) -> bool {
    wanted.len() == found.len() && wanted.iter().all(|entry| found.contains(entry))
}

/// What an address that is not in the status yet, or is about to leave it, leads through and Azure
/// is still changing, on account of a write of which nobody awaits the end any more. Until it has
/// ended the resource shows what was asked for, and an operation that is canceled puts back what
/// was there before.
fn unsure(
    draft: &Draft<'_>,
    placement: &Placement,
    intent: &Intent,
    addresses: &[Arc<str>],
) -> Vec<Wait> {
    let told = &draft.cases[&intent.uid].service.ingress;
    let mut told = told.iter().filter_map(|i| i.ip.as_ref());
    let is_told = |address: &Arc<str>| told.clone().any(|told| told == address);
    if addresses.iter().all(is_told) && told.all(|told| addresses.contains(told)) {
        return Vec::new();
    }
    let seats = placement.balancers.iter().filter(|(_, seats)| seats.has(&intent.uid));
    let seats: Vec<&ResourceId> = seats.map(|(id, _)| id).collect();
    let balancers = seats.iter().filter_map(|id| draft.balancer(id));
    let states = balancers.map(|balancer| (&balancer.id, balancer.provisioning));
    let group = draft.world.azure.security_group.known().and_then(Option::as_ref);
    let states = states.chain(group.map(|group| (&group.id, group.provisioning)));
    let busy = states.filter(|(_, state)| *state == Provisioning::Busy).map(|(id, _)| id);
    // Nor does it lead anywhere before the first node has joined.
    let filled = seats.iter().copied().filter(|id| member::is_filled(draft, id, &intent.base));
    let joining = seats.iter().filter_map(|id| draft.unjoined.get(*id));
    busy.chain(filled).map(|id| Wait::Writing(id.clone())).chain(joining.cloned()).collect()
}

/// A Service that keeps what it has shows the load balancer and the addresses that it has, and none
/// of others'.
fn stay(draft: &mut Draft<'_>, placement: &Placement, uid: &ServiceUid) {
    let case = &draft.cases[uid];
    let (mut addresses, mut holder) = (Vec::new(), None);
    for id in placement.balancers.keys() {
        let Some(balancer) = draft.view(id) else { continue };
        for own in balancer.frontends_of(&case.base) {
            if let Some(address) = frontend::address_of(draft, own) {
                addresses.push(Arc::from(address.to_string()));
                holder = Some(Arc::from(balancer.id.name()));
            }
        }
    }
    let own = |i: &&Ingress| !i.ip.as_ref().is_some_and(|ip| draft.claims.is_withheld(uid, ip));
    let list: Vec<Ingress> = case.service.ingress.iter().filter(own).cloned().collect();
    let withheld = list != case.service.ingress;
    let unsure = withheld && draft.world.inherited.contains(uid);
    let keep = ConditionEdit::Keep;
    let write = (withheld && !unsure).then(|| status(case.service, Some(list), keep));
    if let Some(case) = draft.cases.get_mut(uid) {
        case.waits.extend(unsure.then_some(Wait::Listing));
        case.addresses = addresses;
        case.balancer = holder.or(case.balancer.take());
        draft.steps.writes.extend(write);
    }
}

fn release(draft: &mut Draft<'_>, placement: &Placement, uid: &ServiceUid) {
    let case = &draft.cases[uid];
    let mut balancers = placement.balancers.keys().filter_map(|id| draft.view(id));
    // A frontend stays because other Services' rules lead to it.
    let on_balancer = balancers.any(|balancer| {
        !balancer.rules_of(&case.base).is_empty()
            || balancer.frontends_of(&case.base).iter().any(|f| !balancer.is_used(&f.name))
    });
    let sent = draft.world.in_flight.values().any(|f| f.causes.contains(uid));
    let writing = sent || draft.steps.changes.values().any(|c| c.causes.contains(uid));
    let unread = draft.steps.needs.iter().any(|need| may_hold(draft, uid, need));
    let blind = draft.balancers().is_none() || unread || is_hidden(draft, uid);
    let stands = on_balancer || writing || blind || case.has_traces;
    // Last, because it looks at the whole ledger.
    if stands || security_group::has_open(draft, uid) {
        return;
    }
    let write = let_go(case.service);
    draft.steps.writes.extend(write);
}

/// Whether what has yet to be read may hold a part of the Service: a subnet holds none, nor does a
/// resource group that only others name.
fn may_hold(draft: &Draft<'_>, uid: &ServiceUid, need: &Need) -> bool {
    let (policy, service) = (draft.policy, draft.cases[uid].service);
    match need {
        Need::Subnet(_) => false,
        Need::PublicIps(group) => {
            *group == policy.group || named_group(service).as_ref() == Some(group)
        }
        Need::PrivateLinks(group) => {
            let named = private_link::named_group(policy, service);
            *group == policy.private_link_group || named.as_ref() == Some(group)
        }
        _ => true,
    }
}

/// Whether something that may hold a part of the Service cannot be read.
fn is_hidden(draft: &Draft<'_>, uid: &ServiceUid) -> bool {
    let lists = ip_lists(draft.world, draft.policy, draft.cases[uid].service);
    matches!(draft.world.azure.security_group, Fact::Unreadable(_))
        || matches!(draft.world.kubernetes.ledger, Fact::Unreadable(_))
        || lists.into_iter().flatten().any(|list| matches!(list, Fact::Unreadable(_)))
}

/// The lists of public IPs among which a Service's may be, of resource groups that exist; `None`
/// where one has not been asked for.
pub(crate) fn ip_lists<'w>(
    world: &'w World,
    policy: &Policy,
    service: &Service,
) -> Vec<Option<&'w Fact<ById<PublicIp>>>> {
    let azure = &world.azure;
    let groups = [Some(policy.group.clone()), named_group(service)];
    let there = groups.iter().flatten().filter(|group| !azure.absent_groups.contains(group));
    there.map(|group| azure.public_ips.get(group)).collect()
}

/// The next write to a Service of which nothing is left in Azure: its address and our condition
/// go first, then our finalizers.
pub(crate) fn let_go(service: &Service) -> Option<KubernetesWrite> {
    if service.deletion == Deletion::None {
        let shows = service.load_balancer_type == LoadBalancerType::Other;
        let ingress = (shows && !service.ingress.is_empty()).then(Vec::new);
        let condition = match service.condition {
            Some(_) => ConditionEdit::Remove,
            None => ConditionEdit::Keep,
        };
        if ingress.is_some() || condition != ConditionEdit::Keep {
            return Some(status(service, ingress, condition));
        }
    }
    // The stock finalizer is every controller's: on another's Service it is that one's.
    let ours: &[&str] = match service.load_balancer_type {
        LoadBalancerType::Foreign => &[GATEWAY_FINALIZER],
        LoadBalancerType::Ours | LoadBalancerType::Other => &[SERVICE_FINALIZER, GATEWAY_FINALIZER],
    };
    let mut list = service.finalizers.clone();
    list.retain(|f| !ours.contains(&f.as_ref()));
    let changed = list != service.finalizers;
    changed.then(|| finalizers_write(service, list, FinalizerPurpose::Release))
}
