//! Tags: ours are set, others' stay.

pub(super) use crate::tag_keys::{CLUSTER, DNS, OWNER, SERVICE};

use crate::tag_keys::{LEGACY, UID, is_reserved};
use model::azure::{PrivateLinkService, PublicIp, Tags, is_one_tag};
use model::{Policy, ServiceName};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A tag of ours by its key or the key that older releases used.
pub(super) fn ours<'a>(tags: &'a Tags, key: &str) -> Option<&'a str> {
    model::azure::tag(tags, key).or_else(|| {
        let (_, legacy) = LEGACY.iter().find(|(current, _)| *current == key)?;
        // Others' tags have this name, too: only what names Services as we do counts.
        model::azure::tag(tags, legacy).filter(|value| key != SERVICE || value.contains('/'))
    })
}

/// Whether a public IP carries the Service tag: without it, it is BYO and never deleted.
pub fn is_managed(ip: &PublicIp) -> bool {
    !of(ip, SERVICE).unwrap_or("").is_empty()
}

/// Whether an operator has taken a public IP back ([`release`]).
pub(super) fn is_released(ip: &PublicIp) -> bool {
    of(ip, SERVICE) == Some("")
}

/// Services that a public IP's tag names.
pub fn users(ip: &PublicIp) -> Vec<&str> {
    each_user(ip).collect()
}

/// The same, one after the other.
pub fn each_user(ip: &PublicIp) -> impl Iterator<Item = &str> {
    let names = of(ip, SERVICE).unwrap_or("").split(',').map(str::trim);
    names.filter(|name| !name.is_empty())
}

/// Whether a public IP's tag means a Service by a name, whatever its letter case.
pub fn is_name_of(name: &str, service: &ServiceName) -> bool {
    name.split_once('/').is_some_and(|(namespace, name)| {
        let same = namespace.eq_ignore_ascii_case(&service.namespace);
        same && name.eq_ignore_ascii_case(&service.name)
    })
}

/// The Service that a tag names.
pub(crate) fn service(user: &str) -> Option<ServiceName> {
    let (namespace, name) = user.split_once('/')?;
    Some(ServiceName::new(namespace, name))
}

/// The Services that a public IP's tag names.
pub(crate) fn services(ip: &PublicIp) -> impl Iterator<Item = ServiceName> {
    each_user(ip).filter_map(service)
}

/// Whether a public IP's tag names a Service.
pub(crate) fn names(ip: &PublicIp, service: &ServiceName) -> bool {
    each_user(ip).any(|user| is_name_of(user, service))
}

/// Whether a public IP's tag names any other Service.
pub(crate) fn names_another(ip: &PublicIp, service: &ServiceName) -> bool {
    each_user(ip).any(|user| !is_name_of(user, service))
}

/// Whether the Service that set a public IP's DNS label is none of these.
pub(crate) fn is_label_left(ip: &PublicIp, users: &[&str]) -> bool {
    dns_owner(ip).is_some_and(|owner| !users.iter().any(|user| user.eq_ignore_ascii_case(owner)))
}

/// Whether a public IP's tag names this Service, letter by letter, and no other.
pub fn names_only(ip: &PublicIp, service: &ServiceName) -> bool {
    let is_it = |user: &str| {
        let parts = user.split_once('/');
        parts.is_some_and(|parts| parts == (&*service.namespace, &*service.name))
    };
    let mut users = each_user(ip);
    users.next().is_some_and(is_it) && users.next().is_none()
}

/// The cluster that made a public IP.
pub fn cluster(ip: &PublicIp) -> Option<&str> {
    of(ip, CLUSTER)
}

/// The Service that set a public IP's DNS label.
pub fn dns_owner(ip: &PublicIp) -> Option<&str> {
    of(ip, DNS)
}

/// The Service that a Private Link Service belongs to.
pub fn owner(link: &PrivateLinkService) -> Option<&str> {
    link.tags.as_ref().and_then(|tags| model::azure::tag(tags, OWNER))
}

fn of<'a>(ip: &'a PublicIp, key: &str) -> Option<&'a str> {
    ip.tags.as_ref().and_then(|tags| ours(tags, key))
}

/// Whether a key is that of a tag by which we know what is ours, or of one that the Go cloud
/// provider's older releases wrote.
fn is_mark(key: &str) -> bool {
    let key = key.to_lowercase();
    let made = key.starts_with("k8s-azure-") || key.starts_with("kubernetes-");
    made || key == "service" || key == UID
}

/// Ownership tags that a resource had and has lost. None for a resource that now carries another
/// cluster's UID, nor for one whose tags named no Service: a BYO public IP.
pub fn lost<'a>(had: Option<&'a Tags>, there: Option<&Tags>) -> Vec<(&'a Arc<str>, &'a Arc<str>)> {
    let names = |key| had.and_then(|had| ours(had, key)).is_some_and(|value| !value.is_empty());
    let was_ours = names(SERVICE) || names(OWNER);
    let moved = cluster_uid(there).is_some() && cluster_uid(there) != cluster_uid(had);
    if !was_ours || moved {
        return Vec::new();
    }
    let had = had.into_iter().flatten().filter(|(key, _)| is_mark(key));
    had.filter(|(key, _)| there.is_none_or(|tags| model::azure::tag(tags, key).is_none())).collect()
}

/// The UID of the cluster that made a resource.
fn cluster_uid(tags: Option<&Tags>) -> Option<&str> {
    tags.and_then(|tags| model::azure::tag(tags, UID))
}

/// The tags of a public IP that is made for a Service.
pub(crate) fn of_public_ip(policy: &Policy, service: &ServiceName) -> Tags {
    let service = (Arc::from(SERVICE), Arc::from(service.to_string()));
    BTreeMap::from([service, (Arc::from(CLUSTER), Arc::clone(&policy.cluster))])
}

/// The tags of a public IP of ours that has these, with those that the Service which holds it first
/// wants on it.
pub(crate) fn wished(present: Option<&Tags>, policy: &Policy, wished: &Tags) -> Option<Tags> {
    let mut present = present.cloned();
    present.iter_mut().for_each(renew);
    merged(present.as_ref(), policy, wished, &[SERVICE, CLUSTER, DNS])
}

/// The tags of the Private Link Service of a Service.
pub(crate) fn of_private_link(
    present: Option<&Tags>,
    policy: &Policy,
    owner: &ServiceName,
) -> Option<Tags> {
    let owner = (Arc::from(OWNER), Arc::from(owner.to_string()));
    let more = BTreeMap::from([owner, (Arc::from(CLUSTER), Arc::clone(&policy.cluster))]);
    merged(present, policy, &more, &[])
}

/// Has the tag of a public IP name these Services, comma-separated.
pub(crate) fn set_users(ip: &mut PublicIp, users: &str) {
    set(ip.tags.get_or_insert_default(), SERVICE, users);
}

/// Notes who set the DNS label of a public IP.
pub(crate) fn set_dns_owner(ip: &mut PublicIp, service: &ServiceName) {
    set(ip.tags.get_or_insert_default(), DNS, &service.to_string());
}

/// Forgets who set the DNS label of a public IP.
pub(crate) fn clear_dns_owner(ip: &mut PublicIp) {
    ip.tags.iter_mut().for_each(|tags| clear(tags, DNS));
}

/// Makes a public IP the cluster's, and that of these Services, comma-separated.
pub fn adopt(ip: &mut PublicIp, policy: &Policy, users: &str) {
    set_users(ip, users);
    set(ip.tags.get_or_insert_default(), CLUSTER, &policy.cluster);
}

/// Makes a public IP a BYO public IP. Its ownership tags are emptied and not removed, because a
/// running controller would restore missing ones as drift.
pub fn release(ip: &mut PublicIp) {
    let Some(tags) = &mut ip.tags else { return };
    for key in [SERVICE, CLUSTER, DNS, UID] {
        if ours(tags, key).is_some() {
            set(tags, key, "");
        }
    }
}

/// Gives what older releases wrote its present keys: where `systemTags` are set the old ones go.
fn renew(tags: &mut Tags) {
    for (key, _) in LEGACY {
        if model::azure::tag(tags, key).is_none()
            && let Some(value) = ours(tags, key).map(str::to_owned)
        {
            set(tags, key, &value);
        }
    }
}

/// Sets a tag, keeping the letters of the key that is there.
pub(super) fn set(tags: &mut Tags, key: &str, value: &str) {
    let there = tags.keys().find(|k| is_one_tag(k, key)).cloned();
    tags.insert(there.unwrap_or_else(|| Arc::from(key)), Arc::from(value));
}

/// Removes a tag, by its key or the key that older releases used.
fn clear(tags: &mut Tags, key: &str) {
    let legacy = LEGACY.iter().find(|(current, _)| *current == key).map(|(_, legacy)| *legacy);
    tags.retain(|k, _| {
        !k.eq_ignore_ascii_case(key) && !legacy.is_some_and(|l| k.eq_ignore_ascii_case(l))
    });
}

/// Whether a tag is one of those that annotations have set, and neither the annotation nor the
/// config asks for it any more. With `systemTags` these alone say what goes, as with the Go cloud
/// provider.
pub(crate) fn is_outlived(
    key: &str,
    set: &BTreeSet<Arc<str>>,
    policy: &Policy,
    annotated: &BTreeMap<Arc<str>, Arc<str>>,
) -> bool {
    let mut wanted = annotated.keys().chain(policy.tags.keys());
    policy.system_tags.is_none()
        && set.contains(key.to_lowercase().as_str())
        && !is_reserved(key)
        && !wanted.any(|wanted| is_one_tag(wanted, key))
}

/// The tags of a load balancer or of the security group. Where the config has no tags they are left
/// as they are, whatever `systemTags` say: the Go cloud provider does not look at them then.
pub fn shared(present: Option<&Tags>, policy: &Policy) -> Option<Tags> {
    if policy.tags.is_empty() { present.cloned() } else { configured(present, policy) }
}

/// The tags of a resource of a container load balancer: those of the config, and what is there.
pub fn configured(present: Option<&Tags>, policy: &Policy) -> Option<Tags> {
    merged(present, policy, &BTreeMap::new(), &[])
}

/// The tags of a resource after ours are set: `more`, then those of the config, which win. Where
/// `systemTags` is configured, tags that are neither wanted nor protected by it go.
fn merged(
    present: Option<&Tags>,
    policy: &Policy,
    more: &BTreeMap<Arc<str>, Arc<str>>,
    own: &[&str],
) -> Option<Tags> {
    let mut tags = present.cloned().unwrap_or_default();
    // Which cluster made a resource is not for the config or an annotation to say.
    let wanted = || more.iter().chain(&policy.tags).filter(|(k, _)| !k.eq_ignore_ascii_case(UID));
    for (key, value) in wanted() {
        set(&mut tags, key, value);
    }
    if let Some(prefixes) = &policy.system_tags {
        tags.retain(|key, _| {
            let key = key.to_lowercase();
            wanted().any(|(k, _)| is_one_tag(k, &key))
                || own.iter().any(|k| k.eq_ignore_ascii_case(&key))
                || key.eq_ignore_ascii_case(UID)
                || prefixes.iter().any(|p| key.starts_with(&p.to_lowercase()))
        });
    }
    (present.is_some() || !tags.is_empty()).then_some(tags)
}
