use super::*;
use crate::kinds::by_plural;
use crate::service::claims::Numbers;

struct Cluster {
    numbers: Numbers,
}

impl Cluster {
    fn new() -> Self {
        let ranges = ["10.0.0.0/16", "fd00:10::/112"].map(|range| range.parse().unwrap());
        Self { numbers: Numbers::new(&ranges, &(30_000..=30_009)) }
    }

    fn try_put(&mut self, old: Option<&Value>, mut spec: Value) -> Result<Value, ApiError> {
        let kind = by_plural("services").unwrap();
        if spec.get("ports").is_none() {
            spec["ports"] = json!([{"port": 80}]);
        }
        let mut service = json!({"metadata": {"name": "s"}, "spec": spec});
        if let Some(old) = old {
            service["status"] = old["status"].clone();
        }
        admit(kind, &self.numbers, old, &mut service)?;
        if let Some(old) = old {
            self.numbers.release(old);
        }
        self.numbers.take(&service);
        Ok(service)
    }

    fn put(&mut self, old: Option<&Value>, spec: Value) -> Value {
        self.try_put(old, spec).unwrap()
    }

    fn refuse(&mut self, old: Option<&Value>, spec: Value, field: &str) -> String {
        let error = self.try_put(old, spec).unwrap_err();
        assert_eq!((error.code(), error.reason()), (422, "Invalid"));
        let causes = &error.status()["details"]["causes"];
        assert_eq!(causes[0]["field"], field, "{error}");
        causes[0]["message"].as_str().unwrap().to_string()
    }
}

#[test]
fn defaults_of_a_plain_service() {
    let service = Cluster::new().put(None, json!({}));
    let want = json!({
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        "type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
        "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"],
    });
    assert_eq!(service["spec"], want);
    assert_eq!(service["status"], json!({"loadBalancer": {}}));
}

#[test]
fn session_affinity_has_a_timeout() {
    let service = Cluster::new().put(None, json!({"sessionAffinity": "ClientIP"}));
    let seconds = &service["spec"]["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"];
    assert_eq!(seconds, 10_800);
}

#[test]
fn dual_stack_is_honoured() {
    let mut cluster = Cluster::new();
    let service = cluster.put(None, json!({"ipFamilyPolicy": "PreferDualStack"}));
    assert_eq!(service["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
    assert_eq!(service["spec"]["clusterIPs"], json!(["10.0.0.1", "fd00:10::1"]));
    let six = cluster.put(None, json!({"ipFamilies": ["IPv6"]}));
    assert_eq!(six["spec"]["clusterIP"], "fd00:10::2");
    let spec = json!({"ipFamilyPolicy": "SingleStack"});
    let single = cluster.put(Some(&service), spec);
    assert_eq!(single["spec"]["clusterIPs"], json!(["10.0.0.1"]));
    let again = cluster.put(Some(&single), json!({"ipFamilyPolicy": "RequireDualStack"}));
    assert_eq!(again["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
    let spec = json!({"ipFamilies": ["IPv4", "IPv6"]});
    cluster.refuse(None, spec, "spec.ipFamilyPolicy");
}

#[test]
fn cluster_ips_are_checked_and_stay() {
    let mut cluster = Cluster::new();
    let service = cluster.put(None, json!({"clusterIP": "10.0.7.7"}));
    assert_eq!(service["spec"]["clusterIPs"], json!(["10.0.7.7"]));
    let why = cluster.refuse(None, json!({"clusterIP": "10.0.7.7"}), "spec.clusterIPs");
    assert!(why.contains("already allocated"), "{why}");
    let why = cluster.refuse(None, json!({"clusterIP": "192.0.2.1"}), "spec.clusterIPs");
    assert!(why.contains("not in the valid range"), "{why}");
    let spec = json!({"clusterIP": "10.0.7.8"});
    cluster.refuse(Some(&service), spec, "spec.clusterIPs[0]");
    assert_eq!(cluster.put(Some(&service), json!({}))["spec"]["clusterIP"], "10.0.7.7");
}

#[test]
fn node_ports_are_allocated_and_kept() {
    let mut cluster = Cluster::new();
    let ports = json!([{"name": "a", "port": 53, "protocol": "TCP"},
        {"name": "b", "port": 53, "protocol": "UDP"}, {"name": "c", "port": 80}]);
    let service = cluster.put(None, json!({"type": "NodePort", "ports": ports}));
    let numbers = |service: &Value| -> Vec<u64> {
        let ports = service["spec"]["ports"].as_array().unwrap().iter();
        ports.filter_map(|port| port["nodePort"].as_u64()).collect()
    };
    assert_eq!(numbers(&service), [30_000, 30_000, 30_001], "same number, two protocols");
    let kept = cluster.put(Some(&service), json!({"type": "NodePort", "ports": ports}));
    assert_eq!(numbers(&kept), numbers(&service));
    let wish = json!([{"port": 80, "nodePort": 30_001}]);
    let why =
        cluster.refuse(None, json!({"type": "NodePort", "ports": wish}), "spec.ports[0].nodePort");
    assert_eq!(why, "Invalid value: 30001: provided port is already allocated");
    let wish = json!([{"port": 80, "nodePort": 80}]);
    cluster.refuse(None, json!({"type": "NodePort", "ports": wish}), "spec.ports[0].nodePort");
    let plain =
        cluster.put(Some(&kept), json!({"type": "ClusterIP", "ports": kept["spec"]["ports"]}));
    assert!(numbers(&plain).is_empty(), "unchanged node ports go with the type");
    let wish = json!([{"port": 80, "nodePort": 30_001}]);
    cluster.put(None, json!({"type": "NodePort", "ports": wish}));
}

#[test]
fn a_full_range_is_refused() {
    let mut cluster = Cluster::new();
    for _ in 0..10 {
        cluster.put(None, json!({"type": "NodePort"}));
    }
    cluster.refuse(None, json!({"type": "NodePort"}), "spec.ports[0].nodePort");
}

#[test]
fn load_balancers_may_do_without_node_ports() {
    let spec = json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false});
    let service = Cluster::new().put(None, spec);
    assert!(service["spec"]["ports"][0].get("nodePort").is_none());
}

#[test]
fn leaving_load_balancer_clears_what_belongs_to_it() {
    let mut cluster = Cluster::new();
    let spec = json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local",
        "healthCheckNodePort": 30_007, "loadBalancerClass": "a/b"});
    let mut service = cluster.put(None, spec.clone());
    assert_eq!(service["spec"]["healthCheckNodePort"], 30_007);
    assert_eq!(service["spec"]["allocateLoadBalancerNodePorts"], true);
    service["status"]["loadBalancer"] = json!({"ingress": [{"ip": "192.0.2.1"}]});
    let mut changed = spec;
    changed["healthCheckNodePort"] = json!(30_008);
    cluster.refuse(Some(&service), changed, "spec.healthCheckNodePort");
    let mut next = service["spec"].clone();
    next["type"] = json!("ClusterIP");
    let plain = cluster.put(Some(&service), next);
    for gone in [
        "healthCheckNodePort",
        "externalTrafficPolicy",
        "loadBalancerClass",
        "allocateLoadBalancerNodePorts",
    ] {
        assert!(plain["spec"].get(gone).is_none(), "{gone}");
    }
    assert!(plain["spec"]["ports"][0].get("nodePort").is_none());
    assert_eq!(plain["status"], json!({"loadBalancer": {}}));
}

#[test]
fn bad_services_are_refused() {
    let mut cluster = Cluster::new();
    for (spec, field) in [
        (json!({"ports": []}), "spec.ports"),
        (json!({"type": "Odd"}), "spec.type"),
        (json!({"ports": [{"port": 80}, {"name": "b", "port": 81}]}), "spec.ports[0].name"),
        (json!({"ports": [{"port": 0}]}), "spec.ports[0].port"),
        (json!({"ports": [{"port": 80, "protocol": "X"}]}), "spec.ports[0].protocol"),
        (json!({"ports": [{"name": "a", "port": 80}, {"name": "b", "port": 80}]}), "spec.ports[1]"),
        (json!({"ports": [{"port": 80, "nodePort": 30_000}]}), "spec.ports[0].nodePort"),
        (json!({"loadBalancerClass": "a/b"}), "spec.loadBalancerClass"),
        (json!({"loadBalancerSourceRanges": ["10.0.0.0/8"]}), "spec.LoadBalancerSourceRanges"),
        (
            json!({"type": "LoadBalancer", "loadBalancerSourceRanges": ["10.0.0.0/8", "x"]}),
            "spec.LoadBalancerSourceRanges[1]",
        ),
        (json!({"externalTrafficPolicy": "Local"}), "spec.externalTrafficPolicy"),
        (
            json!({"type": "LoadBalancer", "healthCheckNodePort": 30_000}),
            "spec.healthCheckNodePort",
        ),
        (json!({"type": "ExternalName"}), "spec.externalName"),
        (json!({"sessionAffinity": "Sticky"}), "spec.sessionAffinity"),
    ] {
        cluster.refuse(None, spec, field);
    }
}

#[test]
fn the_class_of_a_load_balancer_stays() {
    let mut cluster = Cluster::new();
    let service = cluster.put(None, json!({"type": "LoadBalancer", "loadBalancerClass": "a/b"}));
    let other = json!({"type": "LoadBalancer", "loadBalancerClass": "a/c"});
    cluster.refuse(Some(&service), other, "spec.loadBalancerClass");
}

#[test]
fn headless_services_get_no_address() {
    let mut cluster = Cluster::new();
    let service = cluster.put(None, json!({"clusterIP": "None", "selector": {"a": "b"}}));
    assert_eq!(service["spec"]["clusterIPs"], json!(["None"]));
    assert_eq!(service["spec"]["ipFamilies"], json!(["IPv4"]));
    let loose = cluster.put(None, json!({"clusterIP": "None"}));
    assert_eq!(loose["spec"]["ipFamilyPolicy"], "RequireDualStack");
}
