//! Public IPs: made, adopted, tagged, released.

use super::tags;
use crate::draft::{Draft, Stance, Traces};
use crate::intent::{DnsLabel, Intent, PublicIpIntent};
use crate::name;
use model::azure::{Allocation, Provisioning, PublicIp, Rest, Sku};
use model::plan::{Action, Change, Resource};
use model::policy::{BalancerSku, IpTagChange};
use model::report::{Finding, Severity, Until, Wait};
use model::world::{Fact, Need};
use model::{Exposure, Family, Group, ResourceId, ServiceUid};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// The public IP of each Service and family.
pub(crate) type Chosen = BTreeMap<(ServiceUid, Family), ResourceId>;

/// A public IP while it is edited on account of several Services.
struct Edited {
    before: Option<Arc<PublicIp>>,
    after: PublicIp,
    causes: BTreeSet<ServiceUid>,
}

/// Chooses, makes and adopts the public IPs that Services want; then lets go of those that none
/// wants any more.
pub(crate) fn plan(draft: &mut Draft<'_>) -> Chosen {
    let mut chosen = Chosen::new();
    let mut edited: BTreeMap<ResourceId, Edited> = BTreeMap::new();
    let uids: Vec<ServiceUid> = draft.by_name.values().cloned().collect();
    for uid in uids {
        let Some(intent) = draft.cases[&uid].intent().cloned() else { continue };
        if intent.exposure != Exposure::Public {
            continue;
        }
        match choose(draft, &intent, &edited) {
            Ok(ids) => {
                for (family, id) in ids {
                    adopt(draft, &intent, family, &id, &mut edited);
                    chosen.insert((uid.clone(), family), id);
                }
            }
            Err(Choice::Wait(wait)) => draft.wait(&uid, wait),
            Err(Choice::Refuse(finding)) => draft.refuse(&uid, *finding),
        }
    }
    release(draft, &chosen, &mut edited);
    for (id, edit) in edited {
        put(draft, &chosen, id, edit);
    }
    chosen
}

/// Why no public IP can be chosen.
enum Choice {
    Wait(Wait),
    Refuse(Box<Finding>),
}

fn choose(
    draft: &mut Draft<'_>,
    intent: &Intent,
    edited: &BTreeMap<ResourceId, Edited>,
) -> Result<Vec<(Family, ResourceId)>, Choice> {
    let group = &intent.public_ip_group;
    let known = match draft.world.azure.public_ips.get(group) {
        Some(Fact::Known(known)) => known,
        Some(Fact::Unreadable(why)) => {
            return Err(refuse(
                "PublicIpGroupUnreadable",
                "service.beta.kubernetes.io/azure-load-balancer-resource-group",
                group.as_str(),
                &format!("a resource group whose public IPs can be read ({why})"),
            ));
        }
        Some(Fact::Unknown) | None => {
            let need = Need::PublicIps(group.clone());
            draft.needs.insert(need.clone());
            return Err(Choice::Wait(Wait::Reading(need)));
        }
    };
    let mut ids = Vec::new();
    for (&family, wish) in &intent.public_ips {
        let id = match wish {
            PublicIpIntent::Managed { prefix } => {
                let name = name::public_ip(draft.policy, intent, prefix.as_ref(), family);
                draft.policy.public_ip_id(group, &name)
            }
            PublicIpIntent::Named(name) => {
                let id = draft.policy.public_ip_id(group, name);
                let Some((id, _)) = known.get_key_value(&id) else {
                    let key = match family {
                        Family::V4 => "service.beta.kubernetes.io/azure-pip-name",
                        Family::V6 => "service.beta.kubernetes.io/azure-pip-name-ipv6",
                    };
                    let allowed = format!("the name of a public IP in resource group {group}");
                    return Err(refuse("PublicIpNotFound", key, name, &allowed));
                };
                id.clone()
            }
            PublicIpIntent::Pinned => pinned(intent, family, known)?,
        };
        if let Some(ip) = known.get(&id) {
            fits(draft, intent, family, ip)?;
        }
        dns_conflict(intent, known.get(&id), edited.get(&id))?;
        ids.push((family, id));
    }
    Ok(ids)
}

fn pinned(
    intent: &Intent,
    family: Family,
    known: &BTreeMap<ResourceId, Arc<PublicIp>>,
) -> Result<ResourceId, Choice> {
    let wanted = intent.pinned.get(&family).copied();
    let found = known.values().find(|ip| wanted.is_some() && ip.address == wanted);
    found.map(|ip| ip.id.clone()).ok_or_else(|| {
        let value = wanted.map(|a| a.to_string()).unwrap_or_default();
        let group = &intent.public_ip_group;
        let allowed = format!("the address of a public IP that exists in resource group {group}");
        let key = match family {
            Family::V4 => "service.beta.kubernetes.io/azure-load-balancer-ipv4",
            Family::V6 => "service.beta.kubernetes.io/azure-load-balancer-ipv6",
        };
        refuse("PinnedAddressNotFound", key, &value, &allowed)
    })
}

fn refuse(rule: &'static str, key: &str, value: &str, allowed: &str) -> Choice {
    Choice::Refuse(Box::new(Finding {
        severity: Severity::Refusal,
        rule,
        key: Arc::from(key),
        value: Arc::from(value),
        allowed: Arc::from(allowed),
    }))
}

/// Key and value by which a Service names the public IP of a family.
fn named_by(intent: &Intent, family: Family) -> (String, String) {
    let (plain, six) = match intent.public_ips.get(&family) {
        Some(PublicIpIntent::Pinned) => ("azure-load-balancer-ipv4", "azure-load-balancer-ipv6"),
        _ => ("azure-pip-name", "azure-pip-name-ipv6"),
    };
    let key = if family == Family::V6 { six } else { plain };
    let value = match intent.public_ips.get(&family) {
        Some(PublicIpIntent::Named(name)) => name.to_string(),
        _ => intent.pinned.get(&family).map(ToString::to_string).unwrap_or_default(),
    };
    (format!("service.beta.kubernetes.io/{key}"), value)
}

/// A public IP is of the family that it is to serve, of a SKU that the load balancer takes, and
/// nobody else's: Azure changes none of that.
fn fits(draft: &Draft<'_>, intent: &Intent, family: Family, ip: &PublicIp) -> Result<(), Choice> {
    let (key, value) = named_by(intent, family);
    let name = ip.id.name();
    if ip.family != family {
        let allowed = format!("a public IP of {family}; {name} is of {}", ip.family);
        return Err(refuse("PublicIpFamilyMismatch", &key, &value, &allowed));
    }
    if draft.policy.sku == BalancerSku::Basic && ip.sku != Sku::Basic {
        let allowed = format!("a Basic public IP; {name} is {}", ip.sku.name());
        return Err(refuse("PublicIpSkuMismatch", &key, &value, &allowed));
    }
    let Some(user) = &ip.user else { return Ok(()) };
    let balancer = user.parent();
    let listed = draft.balancers().is_some_and(|all| {
        balancer.as_ref().is_some_and(|id| {
            all.contains_key(id) || id.group().as_ref() == Some(&draft.policy.balancer_group)
        })
    });
    let collection = user.folded().rsplit('/').nth(1).unwrap_or("");
    if listed && collection == "frontendipconfigurations" {
        return Ok(());
    }
    let allowed = format!("a public IP that nothing else uses; {name} is used by {user}");
    Err(refuse("PublicIpInUse", &key, &value, &allowed))
}

/// A DNS label that another Service has set is not taken over.
fn dns_conflict(
    intent: &Intent,
    present: Option<&Arc<PublicIp>>,
    edited: Option<&Edited>,
) -> Result<(), Choice> {
    let Some(ip) = edited.map(|e| &e.after).or_else(|| present.map(AsRef::as_ref)) else {
        return Ok(());
    };
    let owner = ip.tags.as_ref().and_then(|t| tags::ours(t, tags::DNS)).unwrap_or("");
    let mine = owner.is_empty() || owner.eq_ignore_ascii_case(&intent.name.to_string());
    if mine || intent.public_ip_options.dns_label == DnsLabel::Untouched {
        return Ok(());
    }
    let value = match &intent.public_ip_options.dns_label {
        DnsLabel::Set(label) => label.to_string(),
        DnsLabel::Untouched | DnsLabel::Removed => String::new(),
    };
    let allowed = format!("no label here: {owner} has set the label of public IP {}", ip.id.name());
    Err(refuse(
        "DnsLabelTaken",
        "service.beta.kubernetes.io/azure-dns-label-name",
        &value,
        &allowed,
    ))
}

/// Whose a public IP is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ownership {
    /// We made it, or another cluster did: it carries the Service tag.
    Managed,
    /// Its user brought it: never deleted.
    Brought,
}

fn ownership(ip: &PublicIp) -> Ownership {
    let service = ip.tags.as_ref().and_then(|t| tags::ours(t, tags::SERVICE)).unwrap_or("");
    if service.is_empty() { Ownership::Brought } else { Ownership::Managed }
}

/// Whether a managed public IP is this cluster's.
fn is_this_clusters(ip: &PublicIp, cluster: &str) -> bool {
    let tag = ip.tags.as_ref().and_then(|t| tags::ours(t, tags::CLUSTER)).unwrap_or("");
    ownership(ip) == Ownership::Managed && (tag.is_empty() || tag.eq_ignore_ascii_case(cluster))
}

fn users(ip: &PublicIp) -> Vec<&str> {
    let text = ip.tags.as_ref().and_then(|t| tags::ours(t, tags::SERVICE)).unwrap_or("");
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect()
}

fn adopt(
    draft: &Draft<'_>,
    intent: &Intent,
    family: Family,
    id: &ResourceId,
    edited: &mut BTreeMap<ResourceId, Edited>,
) {
    let before = draft.public_ip(id).cloned();
    let edit = edited.entry(id.clone()).or_insert_with(|| Edited {
        after: before.as_deref().cloned().unwrap_or_else(|| fresh(draft, intent, family, id)),
        before,
        causes: BTreeSet::new(),
    });
    let past = edit.after.clone();
    ensure(draft, intent, family, &mut edit.after);
    if edit.before.is_none() || edit.after != past {
        edit.causes.insert(intent.uid.clone());
    }
}

fn fresh(draft: &Draft<'_>, intent: &Intent, family: Family, id: &ResourceId) -> PublicIp {
    let policy = draft.policy;
    let standard = policy.sku != BalancerSku::Basic;
    let zones = draft.world.azure.zones.known().cloned().unwrap_or_default();
    let prefix = match intent.public_ips.get(&family) {
        Some(PublicIpIntent::Managed { prefix }) if standard => prefix.clone(),
        _ => None,
    };
    let tags = BTreeMap::from([
        (Arc::from(tags::SERVICE), Arc::from(intent.name.to_string())),
        (Arc::from(tags::CLUSTER), Arc::clone(&policy.cluster)),
    ]);
    PublicIp {
        id: id.clone(),
        etag: None,
        location: Arc::clone(&policy.location),
        edge_zone: policy.edge_zone.clone(),
        tags: Some(tags),
        sku: if standard { Sku::Standard } else { Sku::Basic },
        zones: if standard && policy.edge_zone.is_none() { zones } else { Vec::new() },
        family,
        allocation: allocation(standard, family),
        address: None,
        ip_tags: intent.public_ip_options.ip_tags.clone().unwrap_or_default(),
        dns_label: None,
        prefix,
        user: None,
        provisioning: Provisioning::Succeeded,
        rest: Rest::default(),
    }
}

/// Basic IPv6 addresses can only be dynamic.
fn allocation(standard: bool, family: Family) -> Allocation {
    if standard || family == Family::V4 { Allocation::Static } else { Allocation::Dynamic }
}

fn ensure(draft: &Draft<'_>, intent: &Intent, family: Family, ip: &mut PublicIp) {
    let policy = draft.policy;
    let standard = policy.sku != BalancerSku::Basic;
    let key = intent.name.to_string();
    let managed = ownership(ip) == Ownership::Managed;
    if managed && !users(ip).iter().any(|name| name.eq_ignore_ascii_case(&key)) {
        let list = [users(ip), vec![key.as_str()]].concat().join(",");
        tags::set(ip.tags.get_or_insert_default(), tags::SERVICE, &list);
    }
    if standard && ip.sku == Sku::Basic {
        ip.sku = Sku::Standard;
    }
    let options = &intent.public_ip_options;
    if let Some(wanted) = &options.ip_tags
        && managed
        && policy.ip_tag_change == IpTagChange::InPlace
    {
        ip.ip_tags.clone_from(wanted);
    }
    match &options.dns_label {
        DnsLabel::Untouched => {}
        DnsLabel::Removed => {
            ip.dns_label = None;
            if let Some(tags) = ip.tags.as_mut().filter(|_| managed) {
                tags::clear(tags, tags::DNS);
            }
        }
        DnsLabel::Set(label) => {
            if !ip.dns_label.as_ref().is_some_and(|have| have.eq_ignore_ascii_case(label)) {
                ip.dns_label = Some(Arc::clone(label));
            }
            if managed {
                tags::set(ip.tags.get_or_insert_default(), tags::DNS, &key);
            }
        }
    }
    if managed {
        let own = [tags::SERVICE, tags::CLUSTER, tags::DNS];
        ip.tags = tags::merged(ip.tags.as_ref(), policy, &options.tags, &own);
    }
    ip.family = family;
    if ip.allocation != allocation(standard, family) && managed {
        ip.allocation = allocation(standard, family);
    }
}

/// Takes Services that no longer use a public IP off its tag; deletes it after the last one.
fn release(draft: &mut Draft<'_>, chosen: &Chosen, edited: &mut BTreeMap<ResourceId, Edited>) {
    let groups: Vec<Group> = draft.world.azure.public_ips.keys().cloned().collect();
    for group in groups {
        let Some(known) = draft.public_ips(&group) else { continue };
        for ip in known.values() {
            if is_this_clusters(ip, &draft.policy.cluster) {
                release_one(draft, ip, chosen, edited);
            }
        }
    }
}

fn release_one(
    draft: &mut Draft<'_>,
    ip: &Arc<PublicIp>,
    chosen: &Chosen,
    edited: &mut BTreeMap<ResourceId, Edited>,
) {
    let mut kept = Vec::new();
    let mut causes = BTreeSet::new();
    for user in users(ip) {
        match claim(draft, user, ip, chosen) {
            Claim::Holds => kept.push(user),
            Claim::Ended(uid) => {
                causes.extend(uid.clone());
                if let Some(case) = uid.and_then(|uid| draft.cases.get_mut(&uid)) {
                    case.traces = Traces::Some;
                }
            }
        }
    }
    if kept.len() == users(ip).len() {
        return;
    }
    if kept.is_empty() && !edited.contains_key(&ip.id) {
        delete(draft, ip, causes);
        return;
    }
    let list = kept.join(",");
    let dns_owner = ip.tags.as_ref().and_then(|t| tags::ours(t, tags::DNS)).map(str::to_owned);
    let edit = edited.entry(ip.id.clone()).or_insert_with(|| Edited {
        before: Some(Arc::clone(ip)),
        after: PublicIp::clone(ip),
        causes: BTreeSet::new(),
    });
    let tags = edit.after.tags.get_or_insert_default();
    // A Service that joined in this plan is already on the edited tag: only leavers are taken off.
    let joined: Vec<String> = tags::ours(tags, tags::SERVICE)
        .unwrap_or("")
        .split(',')
        .filter(|name| !users(ip).contains(name))
        .map(str::to_owned)
        .collect();
    let list = joined
        .into_iter()
        .fold(list, |list, name| if list.is_empty() { name } else { format!("{list},{name}") });
    tags::set(tags, tags::SERVICE, &list);
    if dns_owner.is_some_and(|owner| !kept.iter().any(|k| k.eq_ignore_ascii_case(&owner))) {
        tags::clear(tags, tags::DNS);
    }
    edit.causes.extend(causes);
}

/// Whether a Service named on a public IP's tag still uses it.
enum Claim {
    /// It does, or we cannot tell.
    Holds,
    /// It does not.
    Ended(Option<ServiceUid>),
}

fn claim(draft: &Draft<'_>, user: &str, ip: &PublicIp, chosen: &Chosen) -> Claim {
    let found = user
        .split_once('/')
        .and_then(|(namespace, name)| draft.by_name.get(&model::ServiceName::new(namespace, name)));
    let Some(uid) = found else {
        let gone = draft.is_abandoned(user);
        return if gone { Claim::Ended(None) } else { Claim::Holds };
    };
    let case = &draft.cases[uid];
    let wanted = || Family::ALL.iter().any(|f| chosen.get(&(uid.clone(), *f)) == Some(&ip.id));
    match &case.stance {
        Stance::Kept | Stance::Container(_) => Claim::Holds,
        // Its own public IP cannot be chosen yet: what it has stays until it can.
        Stance::Wanted(intent)
            if intent.exposure == Exposure::Public
                && !chosen.keys().any(|(owner, _)| owner == uid) =>
        {
            Claim::Holds
        }
        Stance::Wanted(_) if wanted() => Claim::Holds,
        Stance::Wanted(_) | Stance::Leaving => Claim::Ended(Some(uid.clone())),
    }
}

fn delete(draft: &mut Draft<'_>, ip: &Arc<PublicIp>, causes: BTreeSet<ServiceUid>) {
    let mut waits = Vec::new();
    for balancer in draft.balancers().into_iter().flat_map(BTreeMap::values) {
        let uses = balancer.frontends.iter().any(
            |f| matches!(&f.address, model::azure::FrontendAddress::Public(id) if *id == ip.id),
        );
        if uses {
            waits.push(Wait::Resource { id: balancer.id.clone(), until: Until::Released });
        }
    }
    // A load balancer may be about to stand on it, by a write that is under way.
    for (id, write) in &draft.world.in_flight {
        if *id != ip.id && !write.causes.is_disjoint(&causes) {
            waits.push(Wait::Resource { id: id.clone(), until: Until::Released });
        }
    }
    draft.change(Change {
        target: ip.id.clone(),
        action: Action::Delete { before: Resource::PublicIp(Arc::clone(ip)) },
        guard: None,
        causes,
        waits,
    });
}

fn put(draft: &mut Draft<'_>, chosen: &Chosen, id: ResourceId, edit: Edited) {
    let unchanged = edit.before.as_deref() == Some(&edit.after);
    let failed = edit.after.provisioning == Provisioning::Failed;
    if unchanged && !failed {
        return;
    }
    let mut waits = Vec::new();
    let claims = |uid: &ServiceUid| {
        let case = &draft.cases[uid];
        case.intent().is_some() && !crate::kubernetes::is_claimed(draft.policy, case.service)
    };
    if !edit.causes.is_empty() && edit.causes.iter().all(claims) {
        waits.push(Wait::Finalizer);
    }
    if edit.before.is_none() && edit.after.family == Family::V6 {
        waits.extend(elder(draft, chosen, &edit.causes));
    }
    draft.change(Change {
        target: id,
        guard: edit.before.as_ref().and_then(|ip| ip.etag.clone()),
        action: Action::Put {
            before: edit.before.map(Resource::PublicIp),
            after: Resource::PublicIp(Arc::new(edit.after)),
        },
        causes: edit.causes,
        waits,
    });
}

/// A dual-stack Service's IPv6 address is asked for after its IPv4 address: the two come in a
/// known order, and a refused first one leaves no second one behind.
fn elder(draft: &Draft<'_>, chosen: &Chosen, causes: &BTreeSet<ServiceUid>) -> Option<Wait> {
    let first = causes.iter().find_map(|uid| chosen.get(&(uid.clone(), Family::V4)))?;
    let missing = draft.public_ip(first).is_none();
    missing.then(|| Wait::Resource { id: first.clone(), until: Until::Ready })
}

/// The address of a Service's public IP, once it is allocated and nothing is left to be done
/// about it.
pub(crate) fn ready(draft: &Draft<'_>, id: &ResourceId) -> Option<IpAddr> {
    let ip = draft.public_ip(id)?;
    let standard = draft.policy.sku != BalancerSku::Basic;
    let upgraded = !standard || ip.sku != Sku::Basic;
    let settled = ip.provisioning == Provisioning::Succeeded && upgraded;
    ip.address.filter(|_| settled)
}
