//! What is asked of public IPs.

use super::read::group;
use super::words::{Words, is_name, refuse};
use super::{Family, Invalid, PublicIp};
use std::collections::BTreeMap;

/// Keys of tags that only the controller sets, and how such keys begin.
const RESERVED: [&str; 3] = ["service", "kubernetes-cluster-name", "kubernetes-dns-label-service"];
const RESERVED_BEGINNINGS: [&str; 3] = ["k8s-azure-", "aks-managed-", "ballast-cluster-uid"];

/// Everything that is asked of the public IPs of a public Service.
pub(super) fn read(words: &Words<'_>, families: &[Family]) -> Result<PublicIp, Invalid> {
    let name = by_family(words, families, "azure-pip-name");
    for value in name.values() {
        if !is_name(value) {
            return Err(refuse("azure-pip-name", value));
        }
    }
    let prefix = match words.is_standard() {
        true => by_family(words, families, "azure-pip-prefix-id"),
        false => BTreeMap::new(),
    };
    for value in prefix.values() {
        let parts: Vec<&str> = value.trim_matches('/').split('/').collect();
        let kind = parts.len() == 8
            && parts[0].eq_ignore_ascii_case("subscriptions")
            && parts[2].eq_ignore_ascii_case("resourceGroups")
            && parts[5].eq_ignore_ascii_case("Microsoft.Network")
            && parts[6].eq_ignore_ascii_case("publicIPPrefixes");
        if !kind {
            return Err(refuse("azure-pip-prefix-id", value));
        }
    }
    Ok(PublicIp {
        name,
        prefix,
        group: group(words, "azure-load-balancer-resource-group", &words.site.group)?,
        label: label(words)?,
        tags: tags(words)?,
        ip_tags: words.text("azure-pip-ip-tags").map(|_| pairs(words, "azure-pip-ip-tags")),
    })
}

/// A key that has one value for IPv4 and, with `-ipv6` behind it, one for IPv6. The plain one
/// counts for a Service of IPv6 alone, where the other one is absent.
fn by_family(words: &Words<'_>, families: &[Family], key: &str) -> BTreeMap<Family, String> {
    let plain = words.text(key);
    let of_ipv6 = words.text(&format!("{key}-ipv6"));
    let alone = families.len() == 1;
    let value = |family: &Family| match family {
        Family::V4 => plain,
        Family::V6 => of_ipv6.or(plain.filter(|_| alone)),
    };
    let found = families.iter().filter_map(|f| value(f).map(|value| (*f, value.to_owned())));
    found.collect()
}

/// 3 to 63 lower-case letters, digits and dashes, from a letter to a letter or digit; empty takes
/// the label away.
fn label(words: &Words<'_>) -> Result<Option<String>, Invalid> {
    let key = "azure-dns-label-name";
    let Some(label) = words.whole(key).map(str::trim) else { return Ok(None) };
    let sign = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let fits = (3..=63).contains(&label.len())
        && label.chars().all(sign)
        && label.starts_with(|c: char| c.is_ascii_lowercase())
        && !label.ends_with('-');
    match label.is_empty() || fits {
        true => Ok(Some(label.to_owned())),
        false => Err(refuse(key, label)),
    }
}

/// A `key=value` entry: with exactly one `=`, and something before it.
pub(super) fn pair(entry: &str) -> Option<(&str, &str)> {
    match entry.split('=').map(str::trim).collect::<Vec<_>>()[..] {
        [name, value] if !name.is_empty() => Some((name, value)),
        _ => None,
    }
}

/// Whether only the controller sets a tag.
pub(super) fn is_reserved(name: &str) -> bool {
    let name = name.to_lowercase();
    RESERVED.contains(&&*name)
        || RESERVED_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

/// `key=value` entries; others are left out, the last of a key counts.
fn pairs(words: &Words<'_>, key: &str) -> BTreeMap<String, String> {
    let pairs = words.list(key).into_iter().filter_map(pair);
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// `azure-pip-tags`, without reserved ones and those that the config has another value for.
fn tags(words: &Words<'_>) -> Result<BTreeMap<String, String>, Invalid> {
    let key = "azure-pip-tags";
    let mut tags = pairs(words, key);
    if tags.len() > 50 {
        return Err(refuse(key, &format!("{} tags", tags.len())));
    }
    for (name, value) in &tags {
        let forbidden = name.contains(['<', '>', '%', '&', '\\', '?', '/']);
        if forbidden || name.chars().count() > 512 || value.chars().count() > 256 {
            return Err(refuse(key, name));
        }
    }
    tags.retain(|name, _| {
        let of_config = words.site.tags.keys().any(|known| known.eq_ignore_ascii_case(name));
        !is_reserved(name) && !of_config
    });
    Ok(tags)
}
