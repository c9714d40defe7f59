//! Who answers the health probes of nodes.

use super::error::{allowed, clash};
use super::fields::Fields;
use model::policy::{BalancerSku, ClusterProbe, HealthCheck};
use std::sync::Arc;

/// Where kube-proxy tells its health.
const KUBE_PROXY_PORT: u16 = 10_256;

#[derive(Clone, Copy)]
enum Answerer {
    Proxy,
    Agent,
}

/// `healthCheck` and what belongs to it.
pub(super) fn read(fields: &mut Fields, sku: BalancerSku) -> HealthCheck {
    let words = [("proxy", Answerer::Proxy), ("agent", Answerer::Agent)];
    let answerer = fields.word("healthCheck", &words).unwrap_or(Answerer::Proxy);
    let (port_key, share_key) = ("healthCheckAgentPort", "healthCheckMajorityPercent");
    let port = fields.number(port_key, 1_024, 65_535).and_then(|n| u16::try_from(n).ok());
    let share = fields.number(share_key, 1, 100).and_then(|n| u8::try_from(n).ok());
    if port == Some(KUBE_PROXY_PORT) {
        let others = "a port that nothing else on nodes listens on; 10256 is kube-proxy's";
        fields.error(allowed(port_key, &KUBE_PROXY_PORT.to_string(), others));
    }
    match answerer {
        Answerer::Proxy => {
            for (key, set) in [(port_key, port.is_some()), (share_key, share.is_some())] {
                if set {
                    fields.warn(&format!("{key} has no effect without healthCheck: agent"));
                }
            }
            HealthCheck::Proxy
        }
        Answerer::Agent => {
            if sku == BalancerSku::Service {
                fields.error(clash(
                    "healthCheck: agent does not go with loadBalancerSku: service, whose backends \
                     are Pods and not nodes; leave healthCheck out",
                ));
            }
            HealthCheck::Agent {
                port: port.unwrap_or(HealthCheck::AGENT_PORT),
                majority_percent: share.unwrap_or(HealthCheck::MAJORITY_PERCENT),
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Mode {
    NodePort,
    Shared,
}

/// Whose probes Services with the policy Cluster get.
pub(super) fn cluster(fields: &mut Fields, health: HealthCheck) -> ClusterProbe {
    let key = "clusterServiceLoadBalancerHealthProbeMode";
    let words = [("servicenodeport", Mode::NodePort), ("shared", Mode::Shared)];
    let mode = fields.word(key, &words).unwrap_or(Mode::NodePort);
    let port_key = "clusterServiceSharedLoadBalancerHealthProbePort";
    let port = fields.number(port_key, 0, 65_535);
    let port = port.and_then(|n| u16::try_from(n).ok()).filter(|n| *n != 0);
    let path_key = "clusterServiceSharedLoadBalancerHealthProbePath";
    let path = fields.text(path_key);
    if health != HealthCheck::Proxy {
        for (key, set) in [(port_key, port.is_some()), (path_key, path.is_some())] {
            if set {
                fields.error(clash(&format!(
                    "{key} does not go with healthCheck: agent, which answers the shared probe at \
                     its own port and path; leave {key} out"
                )));
            }
        }
    }
    let path = path.unwrap_or_else(|| "/healthz".to_owned());
    if !path.starts_with('/') {
        fields.error(allowed(path_key, &path, "a path that begins with a slash"));
    }
    match mode {
        Mode::NodePort => ClusterProbe::NodePort,
        Mode::Shared => {
            ClusterProbe::Shared { port: port.unwrap_or(KUBE_PROXY_PORT), path: Arc::from(path) }
        }
    }
}
