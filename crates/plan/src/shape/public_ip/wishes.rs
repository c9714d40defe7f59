//! Label and tags that a Service wants on its public IP.

use crate::ask::annotation::full;
use crate::ask::findings::PUBLIC_IP_OPTIONS_IGNORED;
use crate::ask::{DnsLabel, Intent};
use crate::own::Whose;
use crate::own::tags;
use model::Policy;
use model::azure::PublicIp;
use model::policy::IpTagChange;
use model::report::Finding;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Writes what the Service that holds a public IP first wants on it. Of a public IP that is not
/// this cluster's only the label is written, and never removed: whose label it is cannot be known.
/// Of the tags that annotations have set, those go that are wanted no more.
pub(super) fn write(
    policy: &Policy,
    intent: &Intent,
    ip: &mut PublicIp,
    whose: Whose,
    set: Option<&BTreeSet<Arc<str>>>,
) {
    let managed = match whose {
        Whose::Ours => true,
        Whose::Unmarked => false,
        Whose::OtherName | Whose::Foreign => return,
    };
    let options = &intent.public_ip_options;
    if let Some(wanted) = &options.ip_tags
        && managed
        && policy.ip_tag_change == IpTagChange::InPlace
    {
        ip.ip_tags.clone_from(wanted);
    }
    match &options.dns_label {
        DnsLabel::Untouched => {}
        DnsLabel::Removed if !managed => {}
        // The tag that says whose label it was stays: it goes with the Service.
        DnsLabel::Removed => ip.dns_label = None,
        DnsLabel::Set(label) => {
            if !ip.dns_label.as_ref().is_some_and(|have| have.eq_ignore_ascii_case(label)) {
                ip.dns_label = Some(Arc::clone(label));
            }
            if managed {
                tags::set_dns_owner(ip, &intent.name);
            }
        }
    }
    if managed {
        ip.tags = tags::wished(ip.tags.as_ref(), policy, &options.tags);
        if let (Some(there), Some(set)) = (&mut ip.tags, set) {
            there.retain(|key, _| !tags::is_outlived(key, set, policy, &options.tags));
        }
    }
}

/// What a Service wants on a public IP and does not get, because it is not its to say.
pub(super) fn ignored(intent: &Intent, ip: &PublicIp) -> Vec<Finding> {
    let options = &intent.public_ip_options;
    let has = |label: &str| ip.dns_label.as_ref().is_some_and(|l| l.eq_ignore_ascii_case(label));
    let label = match &options.dns_label {
        DnsLabel::Set(label) if !has(label) => Some(label.to_string()),
        DnsLabel::Removed if ip.dns_label.is_some() => Some(String::new()),
        DnsLabel::Set(_) | DnsLabel::Removed | DnsLabel::Untouched => None,
    };
    let tags = options.tags.iter().filter(|(key, value)| {
        let there = ip.tags.as_ref().and_then(|tags| model::azure::tag(tags, key));
        there != Some(&***value)
    });
    let tags: Vec<String> = tags.map(|(key, value)| format!("{key}={value}")).collect();
    let label = label.map(|label| finding("azure-dns-label-name", &label));
    let tags = (!tags.is_empty()).then(|| finding("azure-pip-tags", &tags.join(",")));
    label.into_iter().chain(tags).collect()
}

fn finding(key: &str, value: &str) -> Finding {
    PUBLIC_IP_OPTIONS_IGNORED.found(&full(key), value)
}
