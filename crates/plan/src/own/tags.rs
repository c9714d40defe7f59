//! Tags: ours are set, others' stay.

pub use crate::tag_keys::{CLUSTER, DNS, OWNER, SERVICE};

use crate::tag_keys::{LEGACY, UID};
use model::azure::{PrivateLinkService, PublicIp, Tags};
use model::{Policy, ServiceName};
use std::collections::BTreeMap;
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

/// Gives what older releases wrote its present keys: where `systemTags` are set the old ones go.
pub fn renew(tags: &mut Tags) {
    for (key, _) in LEGACY {
        if model::azure::tag(tags, key).is_none()
            && let Some(value) = ours(tags, key).map(str::to_owned)
        {
            set(tags, key, &value);
        }
    }
}

/// Sets a tag, keeping the letters of the key that is there.
pub fn set(tags: &mut Tags, key: &str, value: &str) {
    let there = tags.keys().find(|k| k.eq_ignore_ascii_case(key)).cloned();
    tags.insert(there.unwrap_or_else(|| Arc::from(key)), Arc::from(value));
}

/// Removes a tag, by its key or the key that older releases used.
pub fn clear(tags: &mut Tags, key: &str) {
    let legacy = LEGACY.iter().find(|(current, _)| *current == key).map(|(_, legacy)| *legacy);
    tags.retain(|k, _| {
        !k.eq_ignore_ascii_case(key) && !legacy.is_some_and(|l| k.eq_ignore_ascii_case(l))
    });
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
pub fn merged(
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
            wanted().any(|(k, _)| k.eq_ignore_ascii_case(&key))
                || own.iter().any(|k| k.eq_ignore_ascii_case(&key))
                || key.eq_ignore_ascii_case(UID)
                || prefixes.iter().any(|p| key.starts_with(&p.to_lowercase()))
        });
    }
    (present.is_some() || !tags.is_empty()).then_some(tags)
}
