//! Reads what one Service asks for.

use super::findings::{INVALID_IDLE_TIMEOUT, INVALID_SUBNET};
use super::idle_timeout::{SHORT_IDLE_TIMEOUT, idle_timeout};
use super::reader::{Reader, Reading, is_resource_name};
use super::{
    EndpointScope, FloatingIp, Intent, RuleOptions, TcpReset, access, additional, audit, limit,
    pinned, placement, private_link, probe, public_ip, tenancy,
};
use model::azure::Distribution;
use model::kubernetes::{Affinity, Service, TrafficPolicy};
use model::policy::BalancerSku;
use model::{Exposure, Family, Policy};
use std::sync::Arc;

/// Reads a Service on load balancers whose backends are nodes.
///
/// # Guarantees
/// There is an intent if and only if no finding is a refusal. Never panics.
#[must_use]
pub fn read(service: &Service, policy: &Policy) -> Reading {
    let mut r = Reader::new(service, policy);
    let exposure = exposure(&r);
    audit::check(&mut r, exposure);
    tenancy::check(&mut r);
    let families = families(service);
    let subnet = subnet(&mut r, exposure);
    let pinned = pinned::read(&mut r, exposure, &families);
    let public_ips = public_ip::sources(&mut r, exposure, &families, &pinned);
    let public_ip_group = public_ip::group(&mut r, exposure);
    let public_ip_options = public_ip::options(&mut r, exposure);
    let placement = placement::read(&mut r, &pinned, &public_ips);
    let rule_options = rule_options(&mut r);
    let floating = rule_options.floating_ip;
    let frontend = private_link::Frontend { exposure, floating, subnet: subnet.as_ref() };
    let private_link = private_link::read(&mut r, &families, &frontend);
    let proxy = private_link::proxy_of_probes(&r);
    let rules =
        probe::rules(&mut r, &probe::Setting { exposure, floating, proxy, families: &families });
    let additional = additional::read(&mut r);
    let access = access::read(&mut r, &families);
    limit::check(&mut r, &families, &rules, &additional, &access);
    let intent = Intent {
        uid: service.uid.clone(),
        name: service.name.clone(),
        base: Arc::from(service.uid.base_name()),
        exposure,
        families,
        placement,
        subnet,
        pinned,
        public_ips,
        public_ip_group,
        public_ip_options,
        additional,
        rules,
        rule_options,
        access,
        private_link,
        scope: match service.traffic_policy {
            TrafficPolicy::Cluster => EndpointScope::Cluster,
            TrafficPolicy::Local => EndpointScope::Local,
        },
    };
    r.finish(intent)
}

/// Public, unless annotated.
pub(super) fn exposure(r: &Reader<'_>) -> Exposure {
    if r.is_set("azure-load-balancer-internal") { Exposure::Internal } else { Exposure::Public }
}

fn families(service: &Service) -> Vec<Family> {
    let has = |family: &Family| service.families.contains(family);
    let families: Vec<Family> = Family::ALL.into_iter().filter(has).collect();
    if families.is_empty() { vec![Family::V4] } else { families }
}

fn subnet(r: &mut Reader<'_>, exposure: Exposure) -> Option<Arc<str>> {
    let key = "azure-load-balancer-internal-subnet";
    let name = r.text(key).filter(|_| exposure == Exposure::Internal)?;
    if !is_resource_name(name) {
        r.find(&INVALID_SUBNET, key, name);
    }
    Some(Arc::from(name))
}

fn rule_options(r: &mut Reader<'_>) -> RuleOptions {
    let (bounds, message) = match r.policy.sku {
        BalancerSku::Basic => (4..=30, SHORT_IDLE_TIMEOUT),
        BalancerSku::Standard | BalancerSku::Service => (4..=100, INVALID_IDLE_TIMEOUT.message),
    };
    let idle_timeout_min = idle_timeout(r, bounds, message);
    RuleOptions {
        idle_timeout_min,
        distribution: match r.service.affinity {
            Affinity::None => Distribution::Default,
            Affinity::ClientIp => Distribution::SourceIp,
        },
        floating_ip: if r.is_set("azure-disable-load-balancer-floating-ip") {
            FloatingIp::Disabled
        } else {
            FloatingIp::Enabled
        },
        tcp_reset: if r.is_set("azure-load-balancer-disable-tcp-reset") {
            TcpReset::Disabled
        } else {
            TcpReset::Enabled
        },
    }
}
