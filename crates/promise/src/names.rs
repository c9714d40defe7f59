//! Names of every part, as the Go cloud provider gives them.

use crate::asks::{Asks, Family, Port};
use crate::estate::last;
use crate::site::Site;

/// Azure takes 80 letters; five are kept for the suffix of a family.
const MOST: usize = 75;

/// What follows the names of things of IPv6 beside the same of IPv4.
const IPV6: &str = "-IPv6";

/// The probe of all Services with the policy Cluster, where one is shared.
pub(crate) const SHARED_PROBE: &str = "cluster-service-shared-health-probe";

/// The finalizer of a Service.
pub(crate) const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";
/// The finalizer that it has beside that on container load balancers, and nowhere else.
pub(crate) const GATEWAY_FINALIZER: &str = "servicegateway.azure.com/service-cleanup";
/// The finalizer of a Pod that leaves by an egress gateway.
pub(crate) const POD_FINALIZER: &str = "servicegateway.azure.com/pod-cleanup";

/// How names of security rules of ours begin.
pub(crate) const SECURITY_RULE: &str = "k8s-azure-lb";

/// `a` and the UID without dashes, cut to 32 letters.
pub(crate) fn base(uid: &str) -> String {
    let mut base = format!("a{}", uid.replace('-', ""));
    base.truncate(32);
    base
}

/// The suffix of a family: only IPv6 beside IPv4 has one.
fn suffix(asks: &Asks, family: Family) -> &'static str {
    if family == Family::V6 && asks.is_dual() { IPV6 } else { "" }
}

/// Cuts a name; what is left of the end has to be a letter or `_`.
fn cut(mut name: String) -> String {
    if name.len() > MOST {
        name.truncate(MOST);
        let end = name.chars().last().unwrap_or('_');
        if !end.is_ascii_alphabetic() && end != '_' {
            name.pop();
            name.push('_');
        }
    }
    name
}

/// `B`, or `B-<subnet>` where an annotation names one.
pub(crate) fn frontend(base: &str, asks: &Asks, family: Family) -> String {
    let name = match &asks.subnet {
        Some(subnet) => cut(format!("{base}-{subnet}")),
        None => base.to_owned(),
    };
    name + suffix(asks, family)
}

/// `B-<PROTO>-<port>`, or `B-<subnet>-<PROTO>-<port>`; the subnet is cut to make it fit.
fn numbered(base: &str, asks: &Asks, family: Family, protocol: &str, port: u64) -> String {
    let end = format!("-{protocol}-{port}");
    let name = match &asks.subnet {
        Some(subnet) => {
            let room = MOST.saturating_sub(base.len() + 1 + end.len());
            let subnet = &subnet[..subnet.len().min(room)];
            format!("{base}-{subnet}{end}")
        }
        None => format!("{base}{end}"),
    };
    name + suffix(asks, family)
}

/// The name of a port's rule, and of its probe.
pub(crate) fn rule(base: &str, asks: &Asks, family: Family, port: &Port) -> String {
    numbered(base, asks, family, port.protocol.name(), port.number)
}

/// The name of the probe on the health check node port.
pub(crate) fn local_probe(base: &str, asks: &Asks, family: Family, health_port: u64) -> String {
    numbered(base, asks, family, "TCP", health_port)
}

/// The cluster's pool of a family: that of IPv6 has a suffix in any case.
pub(crate) fn pool(site: &Site, family: Family) -> String {
    match family {
        Family::V4 => site.cluster.clone(),
        Family::V6 => format!("{}{IPV6}", site.cluster),
    }
}

/// The pool of a Local Service, where there are several load balancers.
pub(crate) fn local_pool(namespace: &str, name: &str, family: Family) -> String {
    let pool = format!("{namespace}-{name}").to_lowercase();
    match family {
        Family::V4 => pool,
        Family::V6 => format!("{pool}-ipv6"),
    }
}

/// A public IP that is made for a Service: `C-B`, with the prefix's name behind it.
pub(crate) fn public_ip(site: &Site, base: &str, asks: &Asks, family: Family) -> String {
    let mut name = format!("{}-{base}", site.cluster);
    if let Some(prefix) = asks.public_ip.prefix.get(&family) {
        name = format!("{name}-{}", last(prefix));
    }
    name.truncate(MOST);
    name + suffix(asks, family)
}

/// A load balancer: its public name, with `-internal` where it is.
pub(crate) fn balancer(name: &str, internal: bool) -> String {
    if internal { format!("{name}-internal") } else { name.to_owned() }
}

/// The ids of the public and the internal load balancer of a name, lower case.
pub(crate) fn balancer_ids(site: &Site, name: &str) -> [String; 2] {
    [false, true].map(|internal| balancer_id(site, &balancer(name, internal)))
}

/// What a load balancer is called after, public or internal, by its id.
pub(crate) fn public_name(id: &str) -> &str {
    let name = last(id);
    name.strip_suffix("-internal").unwrap_or(name)
}

/// The same; `None` where it is of the other kind.
pub(crate) fn called_after(id: &str, internal: bool) -> Option<&str> {
    let name = public_name(id);
    ((name != last(id)) == internal).then_some(name)
}

/// The id of a load balancer, lower case.
pub(crate) fn balancer_id(site: &Site, name: &str) -> String {
    let (subscription, group) = (&site.subscription, &site.balancer_group);
    format!(
        "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Network/\
         loadBalancers/{name}"
    )
    .to_lowercase()
}

/// The id of a public IP, lower case.
pub(crate) fn public_ip_id(site: &Site, group: &str, name: &str) -> String {
    let subscription = &site.subscription;
    format!(
        "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Network/\
         publicIPAddresses/{name}"
    )
    .to_lowercase()
}

/// The id of a subnet of the cluster's network, lower case.
pub(crate) fn subnet_id(site: &Site, name: &str) -> String {
    format!("{}/subnets/{name}", site.network).to_lowercase()
}

/// The name of a Private Link Service.
pub(crate) fn link(asks_name: Option<&str>, frontend: &str) -> String {
    asks_name.map_or_else(|| format!("pls-{frontend}"), str::to_owned)
}

/// Whether a part of a load balancer is named after the Service of this base name.
pub(crate) fn is_of(name: &str, base: &str) -> bool {
    name.get(..base.len()).is_some_and(|start| start.eq_ignore_ascii_case(base))
}

/// The base name at the beginning of the name of a part of ours: `a` and 31 digits of a UID.
pub(crate) fn base_of(name: &str) -> Option<&str> {
    let base = name.get(..32)?;
    let digits = base.strip_prefix(['a', 'A'])?;
    let rest = name[32..].chars().next();
    let ends = rest.is_none_or(|c| c == '-');
    (ends && digits.chars().all(|c| c.is_ascii_hexdigit())).then_some(base)
}

/// Whether a name is that of a pool of the cluster, of either family.
pub(crate) fn is_cluster_pool(site: &Site, name: &str) -> bool {
    Family::BOTH.iter().any(|family| pool(site, *family).eq_ignore_ascii_case(name))
}
