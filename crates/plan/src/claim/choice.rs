//! Which public IP a Service stands on, and why it cannot stand on one.

use super::{Refusal, upgrade};
use crate::ask::findings::UNUSED_PINNED_ADDRESS;
use crate::ask::{DnsLabel, Intent, PublicIpIntent, pinned, public_ip};
use crate::draft::{Draft, Edited};
use crate::own::{self, Whose, name, tags};
use model::azure::{PublicIp, Sku};
use model::policy::{BalancerSku, IpTagChange};
use model::report::{Finding, Until, Wait};
use model::world::{ById, Fact, Need};
use model::{Family, Group, ResourceId, ServiceUid};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// BYO public IPs of the cloud config that a refusal names.
const LISTED: usize = 8;

/// The public IP of each Service and family.
pub(crate) type Chosen = BTreeMap<(ServiceUid, Family), ResourceId>;

/// Why no public IP can be chosen.
pub(crate) enum Choice {
    Wait(Wait),
    Refuse(Box<Refusal>),
}

/// A public IP that a Service is to stand on.
pub(crate) struct Pick {
    pub family: Family,
    pub id: ResourceId,
    /// It, where it is there, and whose it is.
    pub there: Option<(Arc<PublicIp>, Whose)>,
}

/// The public IPs of a Service.
pub(crate) struct Picks {
    /// Those that it is to stand on.
    pub picks: Vec<Pick>,
    /// Those that are to be deleted, so that others are made in their place.
    pub remade: Vec<Arc<PublicIp>>,
}

/// Chooses the public IPs of a Service.
pub(crate) fn choose(
    draft: &mut Draft<'_>,
    intent: &Intent,
    edited: &BTreeMap<ResourceId, Edited>,
) -> Result<Picks, Choice> {
    let group = &intent.public_ip_group;
    let known = known(draft, group)?;
    let (mut picks, mut remade) = (Vec::new(), Vec::new());
    for (&family, wish) in &intent.public_ips {
        let id = match wish {
            PublicIpIntent::Managed { prefix } => {
                let name = name::public_ip(draft.policy, intent, prefix.as_ref(), family);
                draft.policy.public_ip_id(group, &name)
            }
            PublicIpIntent::Named(name) => {
                let id = draft.policy.public_ip_id(group, name);
                let Some((id, _)) = known.get_key_value(&id) else {
                    let (key, name) = named_by(draft, intent, family);
                    let message =
                        format!("must be the name of a public IP in resource group {group}");
                    return Err(refuse("PublicIpNotFound", &key, &name, &message));
                };
                id.clone()
            }
            PublicIpIntent::Pinned => pinned(draft, intent, family, known)?,
        };
        let there = draft.public_ip(&id).map(|ip| (Arc::clone(ip), draft.own.public_ip(ip)));
        if let Some((ip, whose)) = &there {
            is_usable(draft, intent, family, ip, *whose)?;
            is_allowed(draft, intent, family, ip)?;
            if is_of_another_family(draft, intent, family, ip) {
                // Its frontend has the name that the other family's is to have: both go first.
                (picks, remade) = (Vec::new(), vec![(Arc::clone(ip), intent.families.clone())]);
                break;
            }
            fits(draft, intent, family, ip)?;
            basic_in_use(draft, ip)?;
            if is_retagged(draft, intent, ip) {
                remade.push((Arc::clone(ip), vec![family]));
                continue;
            }
        }
        note_other_pin(draft, intent, family, there.as_ref().map(|(ip, _)| &**ip));
        dns_conflict(intent, there.as_ref().map(|(ip, _)| ip), edited.get(&id))?;
        label_conflict(draft, intent, (family, &id), edited)?;
        picks.push(Pick { family, id, there });
    }
    // Another process may have deleted them already: until lists are certain to show it, they stay.
    if !remade.is_empty() && draft.world.inherited.contains(&intent.uid) {
        return Err(Choice::Wait(Wait::Listing));
    }
    for (ip, families) in &remade {
        let id = || ip.id.clone();
        let all = families.iter().map(|family| ((intent.uid.clone(), *family), id()));
        draft.claims.recreated.extend(all);
        draft.wait(&intent.uid, Wait::Resource { id: ip.id.clone(), until: Until::Gone });
    }
    Ok(Picks { picks, remade: remade.into_iter().map(|(ip, _)| ip).collect() })
}

/// The public IPs of a resource group.
fn known<'w>(draft: &mut Draft<'w>, group: &Group) -> Result<&'w ById<PublicIp>, Choice> {
    match draft.world.azure.public_ips.get(group) {
        Some(Fact::Known(known)) => Ok(known),
        Some(Fact::Unreadable(why)) => Err(refuse(
            "PublicIpGroupUnreadable",
            "service.beta.kubernetes.io/azure-load-balancer-resource-group",
            group.as_str(),
            &format!(
                "public IPs of resource group {{value}} cannot be read ({why}); use a resource \
                 group that exists and that the controller's identity can read"
            ),
        )),
        Some(Fact::Unknown) | None => {
            let need = Need::PublicIps(group.clone());
            draft.steps.needs.insert(need.clone());
            Err(Choice::Wait(Wait::Reading(need)))
        }
    }
}

fn pinned(
    draft: &Draft<'_>,
    intent: &Intent,
    family: Family,
    known: &ById<PublicIp>,
) -> Result<ResourceId, Choice> {
    let wanted = intent.pinned.get(&family).copied();
    let found = known.values().find(|ip| wanted.is_some() && ip.address == wanted);
    found.map(|ip| ip.id.clone()).ok_or_else(|| {
        let (key, value) = named_by(draft, intent, family);
        let group = &intent.public_ip_group;
        let message = format!("must be the address of a public IP in resource group {group}");
        refuse("PinnedAddressNotFound", &key, &value, &message)
    })
}

/// Notes a pinned address that differs from that of the Service's public IP. As with the Go cloud
/// provider, a name takes precedence over a prefix, and both over a pinned address.
fn note_other_pin(draft: &mut Draft<'_>, intent: &Intent, family: Family, ip: Option<&PublicIp>) {
    let Some((ip, pinned)) = ip.zip(intent.pinned.get(&family)) else { return };
    if ip.address.is_none_or(|address| address == *pinned) {
        return;
    }
    let key = pinned::key(draft.cases[&intent.uid].service, family);
    let message = format!(
        "{{value}} has no effect, because azure-pip-name or azure-pip-prefix-id decides for public \
         IP {}; use one of the two",
        ip.id.name()
    );
    let found = UNUSED_PINNED_ADDRESS.found_with(&key, &pinned.to_string(), &message);
    draft.note(&intent.uid, [found]);
}

fn refuse(rule: &'static str, key: &str, value: &str, message: &str) -> Choice {
    Choice::Refuse(Box::new(Refusal::new(Finding::refusal(rule, key, value, message))))
}

/// Key and value by which a Service names its address of a family.
pub(crate) fn named_by(draft: &Draft<'_>, intent: &Intent, family: Family) -> (String, String) {
    let service = draft.cases[&intent.uid].service;
    match (intent.public_ips.get(&family), intent.pinned.get(&family)) {
        (Some(PublicIpIntent::Named(name)), _) => {
            (public_ip::name_key(service, family), name.to_string())
        }
        (Some(PublicIpIntent::Pinned) | None, Some(address)) => {
            (pinned::key(service, family), address.to_string())
        }
        _ => (public_ip::name_key(service, family), String::new()),
    }
}

/// Another cluster's public IP is not written, so nothing is put on it.
fn is_usable(
    draft: &Draft<'_>,
    intent: &Intent,
    family: Family,
    ip: &PublicIp,
    whose: Whose,
) -> Result<(), Choice> {
    if whose != Whose::Foreign || draft.own.is_on_our_frontend(ip) {
        return Ok(());
    }
    let (key, value) = named_by(draft, intent, family);
    let name = ip.id.name();
    let message =
        format!("must be a public IP of this cluster or a BYO one; {name} is another cluster's");
    Err(refuse("PublicIpForeign", &key, &value, &message))
}

/// Whether the cloud config lets Services name a public IP: where it lists BYO public IPs, these
/// and those that were made for Services.
pub(super) fn may_be_named(draft: &Draft<'_>, ip: &PublicIp) -> bool {
    let listed = draft.policy.tenancy.public_ips.as_ref();
    listed.is_none_or(|listed| listed.contains(&ip.id)) || draft.own.public_ip(ip) == Whose::Ours
}

/// Whether a Service may use the public IP that it names; refuses the Service otherwise.
fn is_allowed(
    draft: &Draft<'_>,
    intent: &Intent,
    family: Family,
    ip: &PublicIp,
) -> Result<(), Choice> {
    let Some(listed) = &draft.policy.tenancy.public_ips else { return Ok(()) };
    let made = matches!(intent.public_ips.get(&family), Some(PublicIpIntent::Managed { .. }));
    if made || may_be_named(draft, ip) {
        return Ok(());
    }
    let (key, value) = named_by(draft, intent, family);
    let names: Vec<&str> = listed.iter().take(LISTED).map(ResourceId::name).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let message = format!(
        "must be a public IP that allowedBYOPublicIPs of the cloud config lists ({names}), or one \
         of a Service of the same namespace"
    );
    Err(refuse("PublicIpNotAllowed", &key, &value, &message))
}

/// A public IP is of the family that it is to serve, of a SKU that the load balancer takes, and
/// nobody else's: Azure changes none of that.
fn fits(draft: &Draft<'_>, intent: &Intent, family: Family, ip: &PublicIp) -> Result<(), Choice> {
    let unfit = |rule, message: &str| {
        let (key, value) = named_by(draft, intent, family);
        Err(refuse(rule, &key, &value, message))
    };
    if ip.family != family {
        let (name, other) = (ip.id.name(), ip.family);
        let message = format!("must be a public IP of {family}; {name} is of {other}");
        return unfit("PublicIpFamilyMismatch", &message);
    }
    if draft.policy.sku == BalancerSku::Basic && ip.sku != Sku::Basic {
        let (name, sku) = (ip.id.name(), ip.sku.name());
        let message = format!("must be a Basic public IP; {name} is {sku}");
        return unfit("PublicIpSkuMismatch", &message);
    }
    let Some(user) = &ip.user else { return Ok(()) };
    let near = user.is_in(&draft.policy.balancer_group);
    let listed = draft.balancers().is_some_and(|all| {
        user.parent().is_some_and(|balancer| near || all.contains_key(&balancer))
    });
    let collection = user.as_str().rsplit('/').nth(1).unwrap_or("");
    if listed && collection.eq_ignore_ascii_case("frontendIPConfigurations") {
        return Ok(());
    }
    let name = ip.id.name();
    let message = format!("must be a public IP that nothing else uses; {name} is used by {user}");
    unfit("PublicIpInUse", &message)
}

/// A public IP is on one load balancer at a time, and others stay on it where it is.
pub(crate) fn on_another(
    draft: &Draft<'_>,
    intent: &Intent,
    family: Family,
    ip: &ResourceId,
    balancer: &ResourceId,
) -> Refusal {
    let (key, value) = named_by(draft, intent, family);
    let (name, balancer) = (ip.name(), balancer.name());
    let message =
        format!("must be a public IP that is free; {name} is on load balancer {balancer}");
    Refusal::new(Finding::refusal("PublicIpInUse", &key, &value, &message))
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
    let owner = tags::dns_owner(ip).unwrap_or("");
    let mine = owner.is_empty() || tags::is_name_of(owner, &intent.name);
    if mine || intent.public_ip_options.dns_label == DnsLabel::Untouched {
        return Ok(());
    }
    let value = match &intent.public_ip_options.dns_label {
        DnsLabel::Set(label) => label.to_string(),
        DnsLabel::Untouched | DnsLabel::Removed => String::new(),
    };
    let message = format!(
        "cannot be set, because {owner} has set the label of public IP {}; only one Service can",
        ip.id.name()
    );
    Err(refuse(
        "DnsLabelTaken",
        "service.beta.kubernetes.io/azure-dns-label-name",
        &value,
        &message,
    ))
}

/// A DNS label is a region's: each stands for one public IP of a family. One that the Service
/// leaves gives its label up when it goes.
fn label_conflict(
    draft: &Draft<'_>,
    intent: &Intent,
    place: (Family, &ResourceId),
    edited: &BTreeMap<ResourceId, Edited>,
) -> Result<(), Choice> {
    let DnsLabel::Set(label) = &intent.public_ip_options.dns_label else { return Ok(()) };
    let other = label_holder(draft, label, place, edited);
    let Some(other) = other.filter(|ip| !is_left(draft, intent, ip)) else { return Ok(()) };
    let message =
        format!("label {{value}} is used by public IP {}; use another one", other.id.name());
    let key = "service.beta.kubernetes.io/azure-dns-label-name";
    Err(refuse("DnsLabelTaken", key, label, &message))
}

/// Another public IP that has a label.
fn label_holder<'d>(
    draft: &'d Draft<'_>,
    label: &str,
    (family, id): (Family, &ResourceId),
    edited: &'d BTreeMap<ResourceId, Edited>,
) -> Option<&'d PublicIp> {
    let known = own::public_ips(draft.world).map(AsRef::as_ref);
    let mut others = known.chain(edited.values().map(|edit| &edit.after));
    others.find(|ip| {
        ip.id != *id
            && ip.family == family
            && ip.location == draft.policy.location
            && ip.dns_label.as_ref().is_some_and(|have| have.eq_ignore_ascii_case(label))
    })
}

/// Whether a public IP is the Service's alone: it is deleted once the Service stands on another.
fn is_left(draft: &Draft<'_>, intent: &Intent, ip: &PublicIp) -> bool {
    let named = tags::each_user(ip).next().is_some();
    named && !tags::names_another(ip, &intent.name) && draft.own.public_ip(ip) == Whose::Ours
}

/// What a Service asks of a public IP. While the one that it leaves has the label, the new one is
/// made without: clients that know the name reach the Service until the old one is deleted.
pub(crate) fn asked_of<'i>(
    draft: &Draft<'_>,
    intent: &'i Intent,
    place: (Family, &ResourceId),
    edited: &BTreeMap<ResourceId, Edited>,
) -> Cow<'i, Intent> {
    let DnsLabel::Set(label) = &intent.public_ip_options.dns_label else {
        return Cow::Borrowed(intent);
    };
    if label_holder(draft, label, place, edited).is_none() {
        return Cow::Borrowed(intent);
    }
    let mut intent = intent.clone();
    intent.public_ip_options.dns_label = DnsLabel::Untouched;
    Cow::Owned(intent)
}

/// A Basic address that something else uses cannot be raised to Standard.
fn basic_in_use(draft: &Draft<'_>, ip: &PublicIp) -> Result<(), Choice> {
    let standard = draft.policy.sku == BalancerSku::Standard;
    let user = ip.user.as_ref().filter(|_| standard && ip.sku == Sku::Basic);
    let Some(user) = user.filter(|user| upgrade::is_taken(draft, user)) else { return Ok(()) };
    let message = format!(
        "Basic public IP {{value}} cannot be upgraded, because {user} uses it; use a Standard one"
    );
    Err(refuse("BasicPublicIpInUse", "loadBalancerSku", ip.id.name(), &message))
}

/// The names of a Service's public IPs follow its families: one that was made for IPv6 alone has
/// IPv4's name once the Service has both. Azure changes the family of no public IP: this one is
/// deleted, and another is made in its place.
fn is_of_another_family(draft: &Draft<'_>, intent: &Intent, family: Family, ip: &PublicIp) -> bool {
    let made = matches!(intent.public_ips.get(&family), Some(PublicIpIntent::Managed { .. }));
    let own = || draft.own.public_ip(ip) == Whose::Ours && !tags::names_another(ip, &intent.name);
    ip.family != family && made && own()
}

/// Whether a public IP is to have other IP tags. They are a property for life where the config does
/// not say that they may be written: the public IP is deleted, and another is made in its place.
fn is_retagged(draft: &mut Draft<'_>, intent: &Intent, ip: &PublicIp) -> bool {
    let Some(wanted) = &intent.public_ip_options.ip_tags else { return false };
    let in_place = draft.policy.ip_tag_change == IpTagChange::InPlace;
    let fold = |tags: &BTreeMap<Arc<str>, Arc<str>>| -> BTreeSet<(String, String)> {
        tags.iter().map(|(k, v)| (k.to_lowercase(), v.to_lowercase())).collect()
    };
    let ours = draft.own.public_ip(ip) == Whose::Ours;
    if in_place || !ours || fold(wanted) == fold(&ip.ip_tags) {
        return false;
    }
    let shared = tags::names_another(ip, &intent.name);
    // The Service names this one: another would have another address, or none could be made.
    let wish = intent.public_ips.get(&ip.family);
    let named = matches!(wish, Some(PublicIpIntent::Named(_) | PublicIpIntent::Pinned));
    if shared || named {
        let tags: Vec<String> = wanted.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let reason = if shared { "other Services use" } else { "the Service itself names" };
        let also = if shared { ", too" } else { "" };
        let message = format!(
            "{{value}} is not applied, because {reason} public IP {}{also}; use the IP tags that \
             it has",
            ip.id.name()
        );
        let key = "service.beta.kubernetes.io/azure-pip-ip-tags";
        let finding = Finding::note("IpTagsOfSharedPublicIp", key, &tags.join(","), &message);
        draft.note(&intent.uid, [finding]);
        return false;
    }
    true
}
