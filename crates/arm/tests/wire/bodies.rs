//! Bodies in the shapes that Azure was seen with.

use crate::net;
use arm::body::{
    read_load_balancer, read_nat_gateway, read_private_link_service, read_public_ip,
    read_security_group, read_subnet, write_load_balancer, write_nat_gateway,
    write_private_link_service, write_public_ip, write_security_group, write_subnet,
};
use model::azure::{
    Access, AdminState, Allocation, ForeignCollection, Frontend, FrontendAddress, LoadBalancer,
    Pool, PoolAddress, PrivateLinkPolicy, PrivateLinkRank, Probe, ProbeProtocol, Provisioning,
    PublicIp, Rest, Rule, RuleProtocol, SecurityGroup, SecurityRule, Sku, WayOut,
};
use model::{Family, ResourceId};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const BASE: &str = "a000000011111422283330123456789a";

fn id(path: &str) -> ResourceId {
    ResourceId::new(net(path))
}

fn arc(text: &str) -> Arc<str> {
    Arc::from(text)
}

fn balancer() -> LoadBalancer {
    LoadBalancer {
        id: id("loadBalancers/kubernetes"),
        etag: None,
        location: arc("eastus"),
        edge_zone: None,
        tags: None,
        sku: Sku::Standard,
        scope: None,
        frontends: Vec::new(),
        pools: Vec::new(),
        rules: Vec::new(),
        probes: Vec::new(),
        foreign: Vec::new(),
        provisioning: Provisioning::Succeeded,
        rest: Rest::default(),
    }
}

fn node(last: u8) -> PoolAddress {
    PoolAddress {
        address: [10, 224, 0, last].into(),
        name: arc(&format!("vmss00000{last}")),
        admin: AdminState::None,
        network: None,
    }
}

#[test]
fn a_public_balancer_is_written_as_recorded() {
    let lb = LoadBalancer {
        frontends: vec![Frontend {
            name: arc(BASE),
            zones: Vec::new(),
            address: FrontendAddress::Public(id("publicIPAddresses/pip")),
            rest: Rest::default(),
        }],
        pools: vec![Pool {
            name: arc("kubernetes"),
            network: Some(id("virtualNetworks/vnet")),
            addresses: vec![node(4)],
            nics: BTreeSet::new(),
            rest: Rest::default(),
        }],
        rules: vec![Rule {
            name: arc("r"),
            protocol: RuleProtocol::Tcp,
            frontend_port: 80,
            backend_port: 80,
            frontend: Some(id("loadBalancers/kubernetes/frontendIPConfigurations/f")),
            pool: Some(id("loadBalancers/kubernetes/backendAddressPools/kubernetes")),
            probe: Some(id("loadBalancers/kubernetes/probes/r")),
            floating_ip: Some(true),
            idle_timeout_min: Some(4),
            distribution: Some(model::azure::Distribution::SourceIp),
            disable_outbound_snat: Some(true),
            tcp_reset: None,
            rest: Rest::default(),
        }],
        probes: vec![Probe {
            name: arc("r"),
            protocol: ProbeProtocol::Http,
            port: 30080,
            path: Some(arc("/healthz")),
            interval_s: 5,
            threshold: 2,
            rest: Rest::default(),
        }],
        ..balancer()
    };
    let want = json!({
        "id": net("loadBalancers/kubernetes"), "name": "kubernetes", "location": "eastus",
        "sku": {"name": "Standard"},
        "properties": {
            "frontendIPConfigurations": [{"name": BASE, "properties": {
                "publicIPAddress": {"id": net("publicIPAddresses/pip")}}}],
            "backendAddressPools": [{"name": "kubernetes", "properties": {
                "virtualNetwork": {"id": net("virtualNetworks/vnet")},
                "loadBalancerBackendAddresses": [
                    {"name": "vmss000004", "properties": {"ipAddress": "10.224.0.4"}}]}}],
            "loadBalancingRules": [{"name": "r", "properties": {
                "protocol": "Tcp", "frontendPort": 80, "backendPort": 80,
                "frontendIPConfiguration":
                    {"id": net("loadBalancers/kubernetes/frontendIPConfigurations/f")},
                "backendAddressPool":
                    {"id": net("loadBalancers/kubernetes/backendAddressPools/kubernetes")},
                "probe": {"id": net("loadBalancers/kubernetes/probes/r")},
                "enableFloatingIP": true, "idleTimeoutInMinutes": 4,
                "loadDistribution": "SourceIP", "disableOutboundSnat": true}}],
            "probes": [{"name": "r", "properties": {
                "protocol": "Http", "port": 30080, "requestPath": "/healthz",
                "intervalInSeconds": 5, "probeThreshold": 2}}]
        }
    });
    assert_eq!(write_load_balancer(&lb), want);
    assert_eq!(read_load_balancer(&want), Ok(lb));
}

#[test]
fn an_internal_frontend_says_its_family_only_for_ipv6() {
    let frontend = |family, allocation, address: Option<&str>| Frontend {
        name: arc("f"),
        zones: vec![arc("1"), arc("2")],
        address: FrontendAddress::Private {
            subnet: id("virtualNetworks/vnet/subnets/nodes"),
            family,
            allocation,
            address: address.map(|a| a.parse().unwrap()),
        },
        rest: Rest::default(),
    };
    let lb = LoadBalancer {
        frontends: vec![
            frontend(Family::V4, Allocation::Dynamic, Some("10.224.100.5")),
            frontend(Family::V6, Allocation::Static, Some("fd00::220")),
            frontend(Family::V4, Allocation::Dynamic, None),
        ],
        ..balancer()
    };
    let subnet = json!({"id": net("virtualNetworks/vnet/subnets/nodes")});
    let written = write_load_balancer(&lb);
    assert_eq!(
        written["properties"]["frontendIPConfigurations"],
        json!([
            {"name": "f", "zones": ["1", "2"], "properties": {"subnet": subnet,
                "privateIPAllocationMethod": "Dynamic", "privateIPAddress": "10.224.100.5"}},
            {"name": "f", "zones": ["1", "2"], "properties": {"subnet": subnet,
                "privateIPAllocationMethod": "Static", "privateIPAddress": "fd00::220",
                "privateIPAddressVersion": "IPv6"}},
            {"name": "f", "zones": ["1", "2"], "properties": {"subnet": subnet,
                "privateIPAllocationMethod": "Dynamic"}},
        ])
    );
    assert_eq!(read_load_balancer(&written), Ok(lb));
}

/// What a live Azure adds to a load balancer that somebody else set up.
fn live() -> Value {
    let lb = "loadBalancers/kubernetes";
    let pool = "loadBalancers/kubernetes/backendAddressPools/nics";
    json!({
        "id": net(lb).to_uppercase(), "name": "kubernetes", "etag": "W/\"1\"",
        "type": "Microsoft.Network/loadBalancers", "location": "eastus",
        "sku": {"name": "standard", "tier": "Regional"}, "tags": null,
        "properties": {
            "provisioningState": "Updating", "resourceGuid": "g", "newThing": {"a": [1]},
            "frontendIPConfigurations": [{"name": "outbound", "id": "x", "etag": "W/\"1\"",
                "type": "t", "zones": null, "properties": {
                    "provisioningState": "Succeeded", "privateIPAllocationMethod": "Dynamic",
                    "publicIPAddress": {"id": net("publicIPAddresses/byo")},
                    "outboundRules": [{"id": "o"}], "loadBalancingRules": [],
                    "gatewayLoadBalancer": {"id": "g"}}}],
            "backendAddressPools": [{"name": "nics", "properties": {
                "provisioningState": "Succeeded", "outboundRule": {"id": "o"},
                "backendIPConfigurations": [{"id": net("networkInterfaces/n/ipConfigurations/c")}],
                "loadBalancerBackendAddresses": [{"name": "rg_n_c", "properties": {
                    "networkInterfaceIPConfiguration": {"id": "i"}}}]}}],
            "loadBalancingRules": [{"name": "r", "properties": {
                "protocol": "TCP", "frontendPort": "80", "backendPort": 80,
                "backendAddressPool": {"id": net(pool)},
                "backendAddressPools": [{"id": net(pool).to_uppercase()}],
                "loadDistribution": "sourceip", "enableConnectionTracking": false}}],
            "probes": [{"name": "old", "properties": {
                "protocol": "tcp", "port": 80, "intervalInSeconds": 15, "numberOfProbes": 3,
                "loadBalancingRules": [{"id": "r"}]}}],
            "inboundNatRules": [{"name": "ssh", "etag": "W/\"1\"", "properties": {
                "provisioningState": "Succeeded", "protocol": "Tcp", "frontendPort": 2222,
                "backendPort": 22, "frontendIPConfiguration": {"id": "f"}}}],
            "inboundNatPools": [{"name": "p", "properties": {"protocol": "Udp",
                "frontendPortRangeStart": 5000, "frontendPortRangeEnd": 5009,
                "frontendIPConfiguration": {"id": "f"}}}],
            "outboundRules": [{"name": "o", "properties": {"protocol": "All",
                "frontendIPConfigurations": [{"id": "f"}]}}, 7]
        }
    })
}

#[test]
fn a_live_balancer_is_read_without_what_azure_adds() {
    let lb = read_load_balancer(&live()).unwrap();
    assert_eq!(lb.id, id("loadBalancers/kubernetes"));
    assert_eq!(lb.sku, Sku::Standard);
    assert_eq!(lb.tags, None);
    assert_eq!(lb.provisioning, Provisioning::Busy);
    assert_eq!(lb.frontends[0].address, FrontendAddress::Public(id("publicIPAddresses/byo")));
    assert_eq!(lb.pools[0].addresses, []);
    assert_eq!(lb.pools[0].nics.len(), 1);
    assert_eq!(lb.rules[0].frontend_port, 80);
    assert_eq!(lb.probes[0].threshold, 3);
    let foreign: Vec<_> =
        lb.foreign.iter().map(|f| (f.collection, f.frontends.len(), f.ports)).collect();
    assert_eq!(
        foreign,
        [
            (ForeignCollection::Outbound, 1, None),
            (ForeignCollection::Outbound, 0, None),
            (ForeignCollection::NatRule, 1, Some((RuleProtocol::Tcp, 2222, 2222))),
            (ForeignCollection::NatPool, 1, Some((RuleProtocol::Udp, 5000, 5009))),
        ]
    );
}

/// Neither the newer nor the older field says how many equal answers count: Azure's default is one.
#[test]
fn a_probe_that_says_no_threshold_counts_one_answer() {
    let mut body = live();
    let probe = &mut body["properties"]["probes"][0]["properties"];
    probe.as_object_mut().unwrap().remove("numberOfProbes");
    let lb = read_load_balancer(&body).unwrap();
    assert_eq!(lb.probes[0].threshold, 1);
    let written = write_load_balancer(&lb);
    assert_eq!(written["properties"]["probes"][0]["properties"].get("probeThreshold"), None);
}

#[test]
fn what_is_not_ours_goes_back_as_it_came() {
    let mut lb = read_load_balancer(&live()).unwrap();
    let body = write_load_balancer(&lb);
    let p = &body["properties"];
    assert_eq!(body["sku"], json!({"name": "Standard", "tier": "Regional"}));
    assert_eq!(p["newThing"], json!({"a": [1]}));
    assert_eq!(
        p["frontendIPConfigurations"],
        json!([{"name": "outbound", "properties": {
            "publicIPAddress": {"id": net("publicIPAddresses/byo")},
            "privateIPAllocationMethod": "Dynamic", "gatewayLoadBalancer": {"id": "g"}}}])
    );
    assert_eq!(p["backendAddressPools"], json!([{"name": "nics", "properties": {}}]));
    assert_eq!(p["outboundRules"][1], 7);
    assert_eq!(p["inboundNatRules"][0].get("etag"), None);
    assert_eq!(p["loadBalancingRules"][0]["properties"]["enableConnectionTracking"], false);
    assert_eq!(p["loadBalancingRules"][0]["properties"].get("backendAddressPools"), None);
    let probe = &p["probes"][0]["properties"];
    assert_eq!((probe.get("probeThreshold"), &probe["numberOfProbes"]), (None, &json!(3)));
    lb.probes[0].threshold = 2;
    let probe = &write_load_balancer(&lb)["properties"]["probes"][0]["properties"];
    assert_eq!(probe["probeThreshold"], 2);
}

#[test]
fn a_word_that_is_not_known_survives() {
    let body = json!({
        "id": net("loadBalancers/l"), "sku": {"name": "Gateway"}, "properties": {
            "loadBalancingRules": [{"name": "r", "properties": {
                "protocol": "Quic", "frontendPort": 1, "backendPort": 99999}}]}
    });
    let written = write_load_balancer(&read_load_balancer(&body).unwrap());
    assert_eq!(written["sku"], json!({"name": "Gateway"}));
    let rule = &written["properties"]["loadBalancingRules"][0]["properties"];
    assert_eq!((&rule["protocol"], &rule["backendPort"]), (&json!("Quic"), &json!(99999)));
}

fn pool_addresses(balancer: &Value) -> Value {
    let pool = &balancer["properties"]["backendAddressPools"][0];
    pool["properties"]["loadBalancerBackendAddresses"].clone()
}

#[test]
fn pool_addresses_keep_what_is_not_known_of_them() {
    let regional = json!({"name": "eu", "properties": {
        "loadBalancerFrontendIPConfiguration": {"id": "f"}}});
    let body = json!({"id": net("loadBalancers/l"), "properties": {"backendAddressPools": [
        {"name": "p", "properties": {"loadBalancerBackendAddresses": [
            {"name": "b", "properties": {"ipAddress": "10.0.0.2", "adminState": "Down"}},
            {"name": "a", "color": 1, "properties": {"ipAddress": "10.0.0.1", "weight": 5,
                "virtualNetwork": {"id": "/v"}}},
            {"name": "c", "properties": {"ipAddress": "not an address"}},
            regional.clone()]}}]}});
    let mut lb = read_load_balancer(&body).unwrap();
    let addresses: Vec<_> =
        lb.pools[0].addresses.iter().map(|a| (a.address.to_string(), a.admin)).collect();
    assert_eq!(
        addresses,
        [("10.0.0.1".to_owned(), AdminState::None), ("10.0.0.2".to_owned(), AdminState::Down)]
    );
    lb.pools[0].addresses[0].network = None;
    lb.pools[0].addresses.push(node(9));
    let written = write_load_balancer(&lb);
    assert_eq!(
        pool_addresses(&written),
        json!([
            {"name": "a", "color": 1, "properties": {"ipAddress": "10.0.0.1", "weight": 5}},
            {"name": "b", "properties": {"ipAddress": "10.0.0.2", "adminState": "Down"}},
            {"name": "vmss000009", "properties": {"ipAddress": "10.224.0.9"}},
            {"name": "c", "properties": {"ipAddress": "not an address"}},
            regional])
    );
    lb.pools[0].addresses.clear();
    let written = write_load_balancer(&lb);
    let left = pool_addresses(&written);
    assert_eq!(left.as_array().map(Vec::len), Some(2), "those we do not manage stay: {left}");
}

#[test]
fn an_address_pool_that_is_emptied_says_so() {
    let pool = Pool {
        name: arc("p"),
        network: Some(id("virtualNetworks/v")),
        addresses: Vec::new(),
        nics: BTreeSet::new(),
        rest: Rest::default(),
    };
    let lb = LoadBalancer { pools: vec![pool], ..balancer() };
    let p = &write_load_balancer(&lb)["properties"]["backendAddressPools"][0]["properties"];
    assert_eq!(p["loadBalancerBackendAddresses"], json!([]));
}

#[test]
fn a_public_ip_is_written_as_recorded() {
    let ip = PublicIp {
        id: id("publicIPAddresses/kubernetes-a"),
        etag: None,
        location: arc("eastus"),
        edge_zone: Some(arc("losangeles")),
        tags: Some(BTreeMap::from([(arc("k8s-azure-service"), arc("default/web"))])),
        sku: Sku::Standard,
        zones: vec![arc("1"), arc("2"), arc("3")],
        family: Family::V4,
        allocation: Allocation::Static,
        address: None,
        ip_tags: BTreeMap::from([(arc("RoutingPreference"), arc("Internet"))]),
        dns_label: Some(arc("my-web")),
        fqdn: None,
        prefix: Some(id("publicIPPrefixes/prefix")),
        user: None,
        provisioning: Provisioning::Succeeded,
        rest: Rest::default(),
    };
    let want = json!({
        "id": net("publicIPAddresses/kubernetes-a"), "name": "kubernetes-a", "location": "eastus",
        "extendedLocation": {"name": "losangeles", "type": "EdgeZone"},
        "tags": {"k8s-azure-service": "default/web"}, "sku": {"name": "Standard"},
        "zones": ["1", "2", "3"],
        "properties": {"publicIPAddressVersion": "IPv4", "publicIPAllocationMethod": "Static",
            "publicIPPrefix": {"id": net("publicIPPrefixes/prefix")},
            "ipTags": [{"ipTagType": "RoutingPreference", "tag": "Internet"}],
            "dnsSettings": {"domainNameLabel": "my-web"}}
    });
    assert_eq!(write_public_ip(&ip), want);
    assert_eq!(read_public_ip(&want), Ok(ip));
}

#[test]
fn a_live_public_ip_loses_what_is_azures() {
    let body = json!({
        "id": net("publicIPAddresses/p"), "etag": "W/\"2\"", "tags": {"A": "b", "n": 1},
        "sku": {"name": "Basic", "tier": "Regional"},
        "properties": {"ipAddress": "20.0.0.1", "publicIPAddressVersion": "ipv4",
            "publicIPAllocationMethod": "STATIC", "idleTimeoutInMinutes": 4, "ipTags": [],
            "natGateway": {"id": net("natGateways/n")},
            "dnsSettings": {"domainNameLabel": "x", "fqdn": "x.y", "reverseFqdn": "z."}}
    });
    let mut ip = read_public_ip(&body).unwrap();
    assert_eq!(ip.user, Some(id("natGateways/n")));
    assert_eq!(ip.fqdn, Some(arc("x.y")));
    assert_eq!(ip.etag.as_ref().map(|e| e.as_str()), Some("W/\"2\""));
    assert_eq!((ip.sku, ip.allocation), (Sku::Basic, Allocation::Static));
    ip.sku = Sku::Standard;
    ip.dns_label = Some(arc("other"));
    assert_eq!(
        write_public_ip(&ip),
        json!({
            "id": net("publicIPAddresses/p"), "name": "p", "tags": {"A": "b", "n": 1},
            "sku": {"name": "Standard", "tier": "Regional"},
            "properties": {"publicIPAddressVersion": "IPv4", "publicIPAllocationMethod": "Static",
                "ipAddress": "20.0.0.1", "idleTimeoutInMinutes": 4,
                "dnsSettings": {"domainNameLabel": "other", "reverseFqdn": "z."}}
        })
    );
}

fn rule(name: &str) -> SecurityRule {
    let set = |items: &[&str]| items.iter().map(|t| arc(t)).collect();
    SecurityRule {
        name: arc(name),
        access: Access::Allow,
        direction: arc("Inbound"),
        priority: 500,
        protocol: arc("Tcp"),
        sources: set(&["Internet"]),
        source_ports: set(&["*"]),
        destinations: set(&["20.0.0.1"]),
        ports: set(&["80"]),
        rest: Rest::default(),
    }
}

fn group(rules: Vec<SecurityRule>) -> SecurityGroup {
    SecurityGroup {
        id: id("networkSecurityGroups/nsg"),
        etag: None,
        location: arc("eastus"),
        tags: None,
        rules,
        provisioning: Provisioning::Succeeded,
        rest: Rest::default(),
    }
}

#[test]
fn our_security_rules_are_written_as_recorded() {
    let set = |items: &[&str]| items.iter().map(|t| arc(t)).collect();
    let mut several = rule("k8s-azure-lb_allow_IPv4_2");
    several.sources = set(&["203.0.113.0/24", "198.51.100.7/32"]);
    several.destinations = set(&["20.0.0.2", "20.0.0.1"]);
    several.ports = set(&["80", "443"]);
    let mut deny = rule("k8s-azure-lb_deny-all_IPv4");
    deny.access = Access::Deny;
    deny.protocol = arc("*");
    deny.sources = set(&["*"]);
    deny.ports = set(&["*"]);
    let held = group(vec![rule("k8s-azure-lb_allow_IPv4_1"), several, deny]);
    let written = write_security_group(&held);
    assert_eq!(
        written["properties"]["securityRules"],
        json!([
            {"name": "k8s-azure-lb_allow_IPv4_1", "properties": {"access": "Allow",
                "direction": "Inbound", "priority": 500, "protocol": "Tcp",
                "sourceAddressPrefix": "Internet", "sourcePortRange": "*",
                "destinationAddressPrefix": "20.0.0.1", "destinationPortRanges": ["80"]}},
            {"name": "k8s-azure-lb_allow_IPv4_2", "properties": {"access": "Allow",
                "direction": "Inbound", "priority": 500, "protocol": "Tcp",
                "sourceAddressPrefixes": ["198.51.100.7/32", "203.0.113.0/24"],
                "sourcePortRange": "*", "destinationAddressPrefixes": ["20.0.0.1", "20.0.0.2"],
                "destinationPortRanges": ["443", "80"]}},
            {"name": "k8s-azure-lb_deny-all_IPv4", "properties": {"access": "Deny",
                "direction": "Inbound", "priority": 500, "protocol": "*",
                "sourceAddressPrefix": "*", "sourcePortRange": "*",
                "destinationAddressPrefix": "20.0.0.1", "destinationPortRange": "*"}},
        ])
    );
    assert_eq!(read_security_group(&written), Ok(held));
}

#[test]
fn foreign_security_rules_keep_their_form() {
    let foreign = json!({"name": "ssh", "properties": {
        "access": "Allow", "direction": "Inbound", "priority": 500, "protocol": "Tcp",
        "sourceAddressPrefixes": ["10.0.0.0/8"], "sourceAddressPrefix": "",
        "sourcePortRange": "*", "destinationAddressPrefix": "*", "destinationPortRanges": ["22"],
        "destinationApplicationSecurityGroups": [{"id": "a"}], "description": "d"}});
    let body = json!({"id": net("networkSecurityGroups/nsg"), "properties": {
        "securityRules": [foreign.clone()], "defaultSecurityRules": [{"name": "d"}],
        "subnets": [{"id": "s"}], "flushConnection": false}});
    let held = read_security_group(&body).unwrap();
    assert!(held.rules[0].sources.contains("10.0.0.0/8"));
    assert!(held.rules[0].ports.contains("22"));
    let written = write_security_group(&held);
    assert_eq!(
        written["properties"],
        json!({"securityRules": [foreign], "flushConnection": false})
    );
}

#[test]
fn a_subnet_changes_in_its_policy_only() {
    let body = json!({"id": net("virtualNetworks/v/subnets/nodes"), "properties": {
        "addressPrefix": "10.224.0.0/16", "addressPrefixes": ["10.224.0.0/16", "fd00::/64"],
        "privateLinkServiceNetworkPolicies": "Enabled", "routeTable": {"id": "rt"},
        "ipConfigurations": [{"id": "i"}], "provisioningState": "Succeeded"}});
    let mut subnet = read_subnet(&body).unwrap();
    assert_eq!(subnet.prefixes.len(), 2);
    assert_eq!(subnet.private_link, PrivateLinkPolicy::Enabled);
    assert_eq!(subnet.way_out, WayOut::Possible);
    subnet.private_link = PrivateLinkPolicy::Disabled;
    assert_eq!(
        write_subnet(&subnet)["properties"],
        json!({"addressPrefix": "10.224.0.0/16",
            "addressPrefixes": ["10.224.0.0/16", "fd00::/64"],
            "privateLinkServiceNetworkPolicies": "Disabled", "routeTable": {"id": "rt"}})
    );
}

/// Routes are not read, so a route table may lead to the Internet.
#[test]
fn a_subnet_tells_how_its_machines_reach_the_internet() {
    let id = net("virtualNetworks/v/subnets/nodes");
    let way_out = |properties: Value| {
        let subnet = read_subnet(&json!({"id": id, "properties": properties})).unwrap();
        subnet.way_out
    };
    let private = |key: &str, value: Value| {
        let mut properties = json!({"defaultOutboundAccess": false});
        properties[key] = value;
        way_out(properties)
    };
    assert_eq!(way_out(json!({})), WayOut::Default);
    assert_eq!(way_out(json!({"defaultOutboundAccess": true})), WayOut::Default);
    assert_eq!(way_out(json!({"defaultOutboundAccess": false})), WayOut::Nothing);
    assert_eq!(private("natGateway", json!({"id": "nat"})), WayOut::Possible);
    assert_eq!(private("routeTable", json!({"id": "rt"})), WayOut::Possible);
    assert_eq!(private("natGateway", Value::Null), WayOut::Nothing);
}

#[test]
fn a_private_link_service_is_written_as_recorded() {
    let subnet = json!({"id": net("virtualNetworks/v/subnets/nodes")});
    let body = json!({
        "id": net("privateLinkServices/pls-a"), "name": "pls-a", "location": "eastus",
        "tags": {"k8s-azure-owner-service": "default/web"},
        "properties": {
            "ipConfigurations": [
                {"name": "s", "properties": {"privateIPAllocationMethod": "Static",
                    "privateIPAddress": "10.224.0.9", "privateIPAddressVersion": "IPv4",
                    "subnet": subnet, "primary": true}},
                {"name": "d", "properties": {"privateIPAllocationMethod": "Dynamic",
                    "privateIPAddressVersion": "IPv4", "subnet": subnet, "primary": false,
                    "fieldOfTomorrow": {"a": 1}}}],
            "loadBalancerFrontendIpConfigurations": [{"id": net("loadBalancers/l/f/f")}],
            "enableProxyProtocol": true, "fqdns": ["a.b"],
            "visibility": {"subscriptions": ["*"]}, "autoApproval": {"subscriptions": ["s1"]}}
    });
    let mut read = body.clone();
    read["properties"]["alias"] = json!("x");
    read["properties"]["ipConfigurations"][1]["properties"]["privateIPAddress"] =
        json!("10.224.0.10");
    read["properties"]["privateEndpointConnections"] = json!([{"id": "/c", "properties": {}}]);
    let pls = read_private_link_service(&read).unwrap();
    assert_eq!(pls.connections.len(), 1);
    assert_eq!(pls.addresses[0].rank, PrivateLinkRank::Primary);
    assert_eq!((pls.addresses[0].address.is_some(), pls.addresses[1].address), (true, None));
    assert_eq!(write_private_link_service(&pls), body);
}

#[test]
fn an_empty_list_of_subscriptions_is_written_beside_the_other() {
    let id = net("privateLinkServices/pls-a");
    let through = |properties: Value| {
        let body = json!({"id": id, "name": "pls-a", "properties": properties});
        let read = read_private_link_service(&body).unwrap();
        write_private_link_service(&read)["properties"].clone()
    };
    let (all, none) = (json!({"subscriptions": ["*"]}), json!({"subscriptions": []}));
    let both = json!({"visibility": all, "autoApproval": none});
    assert_eq!(through(json!({"visibility": all})), both);
    assert_eq!(through(both.clone()), both);
    assert_eq!(through(json!({"visibility": none, "autoApproval": none})), json!({}));
    // What cannot be read as such a list is not ours to empty.
    let strange = json!({"visibility": all, "autoApproval": 5});
    assert_eq!(through(strange.clone()), strange);
}

#[test]
fn a_nat_gateway_lets_go_of_its_gateway_with_null() {
    let body = json!({
        "id": net("natGateways/team-a"), "name": "team-a", "location": "eastus2",
        "sku": {"name": "StandardV2"},
        "properties": {"serviceGateway": {"id": net("serviceGateways/servicegateway")},
            "publicIpAddresses": [{"id": net("publicIPAddresses/team-a-pip")}],
            "publicIpAddressesV6": [{"id": net("publicIPAddresses/team-a-pip-v6")}]}
    });
    let mut nat = read_nat_gateway(&body).unwrap();
    assert_eq!(write_nat_gateway(&nat), body);
    nat.gateway = None;
    assert_eq!(write_nat_gateway(&nat)["properties"]["serviceGateway"], Value::Null);
    assert!(write_nat_gateway(&nat)["properties"].get("serviceGateway").is_some());
}

#[test]
fn what_cannot_be_read_says_why() {
    let problem = |body: Value| read_load_balancer(&body).unwrap_err().to_string();
    insta::assert_snapshot!(problem(json!(5)),
        @"cannot read the body of a load balancer: it is a number and no object");
    insta::assert_snapshot!(problem(json!({"properties": {}})),
        @"cannot read the body of a load balancer: there is no id");
    insta::assert_snapshot!(problem(json!({"id": "/l", "properties": []})),
        @"cannot read the body of a load balancer (/l): properties: it is a list and no object");
    insta::assert_snapshot!(problem(json!({"id": "/l", "properties": {"probes": [{}]}})),
        @"cannot read the body of a probe (/l): there is no name");
}
