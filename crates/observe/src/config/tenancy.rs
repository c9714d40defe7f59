//! What Services of one namespace may have of what others have.

use super::error::{allowed, clash};
use super::fields::Fields;
use model::policy::{Sharing, Tenancy};
use model::{Group, ResourceId};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most egress gateways that may be allowed: a subscription has at most 1,000 NAT gateways (Azure
/// subscription and service limits, "Azure NAT Gateway limits").
const NAT_GATEWAYS: u32 = 1_000;

/// Whether `tenancy` is `strict`: nothing is allowed that is not listed.
pub(super) fn is_strict(fields: &mut Fields) -> bool {
    fields.word("tenancy", &[("compatible", false), ("strict", true)]) == Some(true)
}

pub(super) fn read(
    fields: &mut Fields,
    strict: bool,
    subscription: &str,
    group: &Group,
) -> Tenancy {
    let across = fields.flag("allowSharingAcrossNamespaces") == Some(true);
    if strict && across {
        let what = "allowSharingAcrossNamespaces: true and tenancy: strict do not go together; \
                    leave one of them out";
        fields.error(clash(what));
    }
    let groups = groups(fields);
    let public_ips = public_ips(fields, subscription, group);
    Tenancy {
        sharing: match (strict, across) {
            (true, _) => Sharing::None,
            (false, true) => Sharing::All,
            (false, false) => Sharing::Consent,
        },
        groups: groups.or_else(|| strict.then(Vec::new)),
        public_ips: public_ips.or_else(|| strict.then(Vec::new)),
        egress: egress(fields),
        most_egress: fields
            .number("maximumEgressGateways", 1, NAT_GATEWAYS)
            .unwrap_or(Tenancy::MOST_EGRESS),
    }
}

fn groups(fields: &mut Fields) -> Option<Vec<Group>> {
    let names = fields.list("allowedResourceGroups")?;
    Some(names.iter().map(|name| Group::new(name)).collect())
}

/// `name` is in the cluster's resource group, `group/name` in another.
fn public_ips(fields: &mut Fields, subscription: &str, own: &Group) -> Option<Vec<ResourceId>> {
    let key = "allowedBYOPublicIPs";
    let mut all = Vec::new();
    for text in fields.list(key)? {
        let (group, name) = match text.split_once('/') {
            Some((group, name)) => (Group::new(group.trim()), name.trim()),
            None => (own.clone(), &*text),
        };
        if name.is_empty() || name.contains('/') || group.as_str().is_empty() {
            let form = "names of public IPs, or resource group and name as in ips/web";
            fields.error(allowed(key, &text, form));
            continue;
        }
        let kind = "Microsoft.Network/publicIPAddresses";
        all.push(ResourceId::of(subscription, &group, kind, name));
    }
    Some(all)
}

/// An object of names and lists of namespaces.
fn egress(fields: &mut Fields) -> BTreeMap<Arc<str>, Vec<Arc<str>>> {
    let key = "egressGatewayNamespaces";
    let Some(value) = fields.take(key) else { return BTreeMap::new() };
    let Value::Object(object) = &value else {
        fields.refuse(key, &value, "an object of egress gateways and lists of namespaces");
        return BTreeMap::new();
    };
    let names: Vec<String> = object.keys().cloned().collect();
    let read = |inner: &mut Fields| {
        let mut all: BTreeMap<Arc<str>, Vec<Arc<str>>> = BTreeMap::new();
        for name in &names {
            let namespaces = inner.list(name).unwrap_or_default();
            // Azure tells no letter case apart: labels of Pods are read in small letters.
            all.entry(Arc::from(name.trim().to_lowercase())).or_default().extend(namespaces);
        }
        all
    };
    fields.inner(key, value.clone(), read).unwrap_or_default()
}
