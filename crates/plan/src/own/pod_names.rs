//! Names of everything a container load balancer or an egress gateway has in Azure, and which
//! names are ours.

use model::azure::PublicIp;
use model::gateway::{DEFAULT_EGRESS, DefaultService, Direction, GatewayService};
use model::world::Azure;
use model::{Policy, Protocol, ResourceId, ServiceUid, World};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The frontend of a container load balancer.
pub const FRONTEND: &str = "frontend";

/// Suffix of public IPs.
pub const PUBLIC_IP: &str = "-pip";

/// The gateway service, load balancer and pool of a Service.
pub fn of_service(uid: &ServiceUid) -> Arc<str> {
    let text = uid.as_str();
    if text.bytes().any(|b| b.is_ascii_uppercase()) {
        Arc::from(text.to_lowercase())
    } else {
        Arc::from(text)
    }
}

/// Whether a name is that of a Service's gateway service, load balancer and pool.
pub fn is_of(name: &str, uid: &ServiceUid) -> bool {
    name.eq_ignore_ascii_case(uid.as_str())
}

/// The name that a load balancer is for, if it is one of ours.
pub fn of_balancer(id: &ResourceId) -> String {
    id.name().to_lowercase()
}

/// The name that a public IP is for, if it is one of ours.
pub fn of_ip(id: &ResourceId) -> Option<String> {
    id.name().to_lowercase().strip_suffix(PUBLIC_IP).map(str::to_owned)
}

/// The rule of a Service's port.
pub fn rule(protocol: Protocol, port: u16) -> String {
    format!("rule-{}-{port}", protocol.name().to_lowercase())
}

/// The public IP of a load balancer, and the IPv4 one of an egress gateway.
pub fn public_ip(name: &str) -> String {
    format!("{name}{PUBLIC_IP}")
}

/// The public IP of a Service's load balancer, where it is known to exist.
pub(crate) fn ip_of<'w>(
    world: &'w World,
    policy: &Policy,
    uid: &ServiceUid,
) -> Option<&'w Arc<PublicIp>> {
    let id = policy.public_ip_id(&policy.group, &public_ip(&of_service(uid)));
    world.azure.public_ips.get(&policy.group)?.known()?.get(&id)
}

/// The IPv6 public IP of an egress gateway.
pub fn public_ip_v6(name: &str) -> String {
    format!("{name}-pip-v6")
}

/// The table of gateway services, as the target of writes.
pub fn services_table(policy: &Policy) -> ResourceId {
    ResourceId::new(format!("{}/services", policy.gateway_id()))
}

/// The table of addresses, as the target of writes.
pub fn locations_table(policy: &Policy) -> ResourceId {
    ResourceId::new(format!("{}/addressLocations", policy.gateway_id()))
}

/// Whether a name has the form of a UID: 8-4-4-4-12 hexadecimal digits.
pub fn is_uid(name: &str) -> bool {
    name.len() == 36
        && name.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Whether what a write is for is an egress gateway: its name stands in the place of a UID.
pub fn is_gateway(cause: &ServiceUid) -> bool {
    !is_uid(cause.as_str())
}

/// Whether Azure takes a name for an egress gateway: up to 73 characters, so that the public IPs'
/// suffix fits into 80.
pub fn is_egress(name: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b);
    let first = name.bytes().next();
    let last = name.bytes().next_back();
    (1..=73).contains(&name.len())
        && name.bytes().all(inner)
        && first.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        && last.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        && (name.len() > 1 || name != "_")
}

/// Whether a name stands for the cluster's own way out.
pub fn is_reserved(name: &str) -> bool {
    name.eq_ignore_ascii_case(DEFAULT_EGRESS)
}

/// Whether a gateway service is not ours: a default, or one of a form that we never register.
pub fn is_foreign(service: &GatewayService) -> bool {
    service.default == DefaultService::Yes
        || is_reserved(&service.name)
        || match service.direction {
            Direction::Inbound => !is_uid(&service.name),
            Direction::Outbound => !is_egress(&service.name.to_lowercase()),
            Direction::InboundOutbound | Direction::Unknown => true,
        }
}

/// NAT gateways that gateway services of others lead to, as the cluster's own way out does.
pub fn nats_of_others(azure: &Azure) -> BTreeSet<&ResourceId> {
    let foreign = azure.gateway_services.each().filter(|service| is_foreign(service));
    foreign.filter_map(|service| service.nat_gateway.as_ref()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn egress_names_are_those_that_azure_takes() {
        for name in ["a", "team-a", "9", "a_", "a.b-c_d", &"a".repeat(73)] {
            assert!(is_egress(name), "{name}");
        }
        for name in ["", "-a", "a-", "a.", "A", "a/b", "_", &"a".repeat(74)] {
            assert!(!is_egress(name), "{name}");
        }
    }

    #[test]
    fn the_way_out_of_the_cluster_is_reserved_in_any_letters() {
        assert!(is_reserved("default-natgw") && is_reserved("Default-NatGW"));
        assert!(!is_reserved("default-natgw2"));
    }

    #[test]
    fn uids_are_told_by_their_form() {
        assert!(is_uid("00000001-1111-4222-8333-0123456789ab"));
        assert!(!is_uid("00000001-1111-4222-8333-0123456789ag"));
        assert!(!is_uid("team-a"));
    }
}
