//! Cloud configs, right and wrong.

use crate::{policy, read_value, small, with};
use model::policy::{
    BalancerSku, Chosen, ClusterProbe, ControlPlane, DriftPolicy, HealthCheck, KeepBoth, Layout,
    NodeDrain, Operator, OutboundSnat, Placement, PoolKind, Preconfigured, Sharing, Tenancy,
    VmKind,
};
use model::{Group, ResourceId, ServiceName};
use observe::config::{
    Cloud, Config, ConfigError, ConfigType, Credential, Sources, StackQuirks, read,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The config that the recorded cases of the Go provider start from.
fn recorded() -> Value {
    json!({
        "cloud": "AzurePublicCloud", "tenantId": "adfs",
        "aadClientId": "22222222-2222-2222-2222-222222222222", "aadClientSecret": "s",
        "subscriptionId": "00000000-0000-0000-0000-000000000001", "resourceGroup": "rg",
        "location": "eastus", "vmType": "vmss", "primaryScaleSetName": "vmss",
        "subnetName": "nodes", "securityGroupName": "nsg", "vnetName": "vnet",
        "vnetResourceGroup": "rg", "routeTableName": "rt", "loadBalancerSku": "standard",
        "loadBalancerBackendPoolConfigurationType": "nodeIP", "disableOutboundSNAT": true,
        "excludeMasterFromStandardLB": true, "useInstanceMetadata": false,
        "maximumLoadBalancerRuleCount": 250, "cloudProviderBackoff": true,
    })
}

/// Without what every line begins with, and with the value before what is allowed.
fn short(error: &ConfigError) -> String {
    let text = error.to_string();
    let text = text.trim_start_matches("cloud config: ");
    if let Some((key, rest)) = text.split_once(": must be ")
        && let Some((allowed, value)) = rest.rsplit_once(" (got ")
    {
        return format!("{key} is {} -> {allowed}", value.trim_end_matches(')'));
    }
    text.replace(" is not set; it is needed: ", " missing: ")
}

fn errors(config: &Value) -> String {
    match read_value(config) {
        Ok(_) => "no error".to_owned(),
        Err(errors) => {
            let lines: Vec<String> = errors.iter().map(short).collect();
            lines.join("\n")
        }
    }
}

fn wrong(changes: Value) -> String {
    errors(&with(changes))
}

fn parse(text: &str, environment: &[(&str, &str)]) -> Config {
    let environment: BTreeMap<String, String> =
        environment.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    read(&Sources { text, cluster: "kubernetes", environment: &environment })
        .expect("the config is right")
}

#[test]
fn nodes_drain_for_as_long_as_is_said() {
    for (said, drain) in [(json!(0), NodeDrain::Off), (json!("90"), NodeDrain::For { seconds: 90 })]
    {
        let mut config = recorded();
        config["nodeDrainSeconds"] = said;
        assert_eq!(read_value(&config).unwrap().policy.node_drain, drain);
    }
}

#[test]
fn services_move_as_the_config_says() {
    let pods = json!({"loadBalancerSku": "service", "serviceGatewayEnabled": true,
        "loadBalancerBackendPoolConfigurationType": "podIP", "disableOutboundSNAT": null});
    let moves = |of: &Value, said: Value| {
        let mut config = recorded();
        for (key, value) in of.as_object().unwrap() {
            config[key] = value.clone();
        }
        config["layoutMigration"] = said;
        read_value(&config)
            .map(|read| read.policy.migration)
            .map_err(|errors| errors.iter().map(short).collect::<Vec<_>>().join("\n"))
    };
    // The way there has defaults, the way back has to be asked for.
    let there = moves(&pods, Value::Null).unwrap().unwrap();
    assert_eq!((there.keep_both, there.drain_s), (KeepBoth::For { seconds: 3_600 }, 60));
    assert_eq!((there.chosen, &there.from.layout), (Chosen::All, &Layout::Single));
    // The key of the former config has the default that it has in every config.
    let empty = moves(&pods, json!({"from": {}})).unwrap().unwrap();
    assert_eq!((there.from.pools, empty.from.pools), (PoolKind::NodeNic, PoolKind::NodeNic));
    assert_eq!(moves(&json!({}), Value::Null), Ok(None));
    let back = moves(&json!({}), json!({})).unwrap().unwrap();
    assert_eq!((&back.from.layout, back.from.sku), (&Layout::PerService, BalancerSku::Service));
    let said = json!({"keepBoth": "2d", "drainSeconds": 5, "services": ["a/web"],
        "namespaces": "b", "from": {"disableOutboundSNAT": true,
            "loadBalancerBackendPoolConfigurationType": "nodeIP",
            "multipleStandardLoadBalancerConfigurations":
                [{"name": "kubernetes", "primaryVMSet": "vmss"}]}});
    let there = moves(&pods, said).unwrap().unwrap();
    assert_eq!((there.keep_both, there.drain_s), (KeepBoth::For { seconds: 172_800 }, 5));
    assert!(matches!(there.from.layout, Layout::Several(_)));
    assert_eq!(there.from.outbound_snat, OutboundSnat::Disabled);
    for (name, moves) in [("a/web", true), ("b/api", true), ("a/api", false)] {
        let (namespace, service) = name.split_once('/').unwrap();
        assert_eq!(there.chosen.has(&ServiceName::new(namespace, service)), moves, "{name}");
    }
    let told = moves(&pods, json!({"keepBoth": "UntilTold"})).unwrap().unwrap();
    assert_eq!(told.keep_both, KeepBoth::UntilTold);
    for time in ["soon", "31d", "1", "-1s", "h"] {
        let wrong = moves(&pods, json!({"keepBoth": time})).unwrap_err();
        let form = "a time up to 30d as in 90s, 10m, 1h or 2d, or untilTold";
        assert_eq!(wrong, format!("layoutMigration.keepBoth is \"{time}\" -> {form}"));
    }
    let wrong = moves(&pods, json!({"services": "web"})).unwrap_err();
    assert!(wrong.contains("namespace and name of a Service"), "{wrong}");
    let mut closed = pods.clone();
    closed["securityGroupName"] = Value::Null;
    assert_eq!(moves(&closed, Value::Null), Ok(None));
    let wrong = moves(&closed, json!({})).unwrap_err();
    assert!(wrong.contains("securityGroupName missing"), "{wrong}");
}

#[test]
fn additional_addresses_are_ranges_or_addresses() {
    let ranges = |said: Value| {
        let ranges = policy(json!({"allowedAdditionalPublicIPs": said})).additional_addresses;
        ranges.map(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
    };
    assert_eq!(ranges(Value::Null), None);
    assert_eq!(ranges(json!("20.9.9.0/24, 20.8.8.8")).as_deref(), Some("20.8.8.8/32,20.9.9.0/24"));
    assert_eq!(ranges(json!(["2603:9::/64"])).as_deref(), Some("2603:9::/64"));
    let wrong = wrong(json!({"allowedAdditionalPublicIPs": "20.9.9.1/24,x"}));
    assert_eq!(wrong.lines().count(), 2, "{wrong}");
}

/// Labels of Pods are read in small letters: a name in others would never be asked for.
#[test]
fn names_of_egress_gateways_are_read_as_labels_are() {
    let said = json!({"Payments": ["shop", "bank"], "open": "*"});
    let egress = policy(json!({"egressGatewayNamespaces": said})).tenancy.egress;
    let found = egress.iter().map(|(name, all)| format!("{name}: {}", all.join(" ")));
    assert_eq!(found.collect::<Vec<_>>(), ["open: *", "payments: shop bank"]);
}

#[test]
fn strict_tenancy_allows_only_what_is_listed() {
    let tenancy = |said: Value| policy(said).tenancy;
    assert_eq!(tenancy(json!({})), Tenancy::default());
    assert_eq!(tenancy(json!({"tenancy": "compatible"})), Tenancy::default());
    let strict = policy(json!({"tenancy": "strict"}));
    assert_eq!(strict.additional_addresses, Some(Vec::new()));
    let closed = (strict.tenancy.sharing, strict.tenancy.groups, strict.tenancy.public_ips);
    assert_eq!(closed, (Sharing::None, Some(Vec::new()), Some(Vec::new())));
    let open = tenancy(json!({"allowSharingAcrossNamespaces": true}));
    assert_eq!((open.sharing, open.groups), (Sharing::All, None));
    let listed = tenancy(json!({"tenancy": "strict", "allowedResourceGroups": "IPs, links",
        "allowedBYOPublicIPs": ["web", "ips/other"], "maximumEgressGateways": 7,
        "networkResourceSubscriptionID": "net",
        "egressGatewayNamespaces": {"team-a": ["a", "b"], "shared": "*"}}));
    assert_eq!(listed.groups, Some(vec![Group::new("ips"), Group::new("links")]));
    // Public IPs are of the network's subscription, whatever the one of the machines is.
    let ip = |group: &str, name: &str| {
        ResourceId::of("net", &Group::new(group), "Microsoft.Network/publicIPAddresses", name)
    };
    assert_eq!(listed.public_ips, Some(vec![ip("rg", "web"), ip("ips", "other")]));
    assert_eq!(listed.most_egress, 7);
    assert_eq!(listed.egress["team-a"], ["a".into(), "b".into()]);
    assert_eq!(listed.egress["shared"], ["*".into()]);
    for said in [
        json!({"tenancy": "loose"}),
        json!({"tenancy": "strict", "allowSharingAcrossNamespaces": true}),
        json!({"allowedBYOPublicIPs": "a/b/c"}),
        json!({"egressGatewayNamespaces": "team-a"}),
        json!({"egressGatewayNamespaces": {"team-a": 1}}),
        json!({"maximumEgressGateways": 0}),
    ] {
        let wrong = wrong(said.clone());
        assert_eq!(wrong.lines().count(), 1, "{said}: {wrong}");
    }
}

#[test]
fn the_recorded_config_is_right() {
    let config = read_value(&recorded()).unwrap();
    let policy = &config.policy;
    assert_eq!((policy.sku, policy.pools), (BalancerSku::Standard, PoolKind::NodeIp));
    assert_eq!(policy.outbound_snat, OutboundSnat::Disabled);
    assert_eq!(policy.exclude_control_plane, ControlPlane::Excluded);
    assert_eq!((policy.vm_kind, &*policy.primary_set), (VmKind::ScaleSet, "vmss"));
    assert_eq!((&policy.layout, policy.drift), (&Layout::Single, DriftPolicy::Repair));
    assert_eq!(policy.maximum_rules, 250);
    assert_eq!(policy.cluster_probe, ClusterProbe::NodePort);
    assert_eq!(policy.node_drain, NodeDrain::For { seconds: 30 });
    assert_eq!(
        config.warnings,
        ["without effect here, where limits are learnt from Azure's answers: cloudProviderBackoff"]
    );
}

#[test]
fn defaults_are_filled_in() {
    let config = read_value(&small()).unwrap();
    let policy = &config.policy;
    assert_eq!(policy.group, Group::new("rg"));
    assert_eq!(policy.balancer_group, policy.group);
    assert_eq!(&*policy.location, "eastus");
    assert_eq!(policy.network_subscription, policy.subscription);
    assert_eq!((policy.sku, policy.pools), (BalancerSku::Standard, PoolKind::NodeNic));
    assert_eq!(policy.system_tags, None);
    assert_eq!(config.settings.cloud, Cloud::Public);
    assert_eq!(config.settings.config_type, ConfigType::Merge);
    assert_eq!(config.warnings, Vec::<String>::new());
}

#[test]
fn yaml_and_any_letter_case_will_do() {
    let config = parse(
        "TENANTID: t\naadclientid: c\naadClientSecret: s\nsubscriptionId: sub\n\
         resourceGroup: Rg\nlocation: westeurope\nvnetname: v\nsubnetName: s\n\
         securityGroupName: g\nloadBalancerSku: STANDARD\nloadBalancerResourceGroup: LBS\n\
         networkResourceSubscriptionID: net\ntags: 'a=b, c = d'\n\
         tagsMap:\n  A: x\nsystemTags: 'sys-, other'\ndriftPolicy: report\n\
         clusterServiceLoadBalancerHealthProbeMode: shared\n\
         clusterServiceSharedLoadBalancerHealthProbePort: 10356\n",
        &[],
    );
    let policy = &config.policy;
    assert_eq!((policy.balancer_group.as_str(), &*policy.network_subscription), ("lbs", "net"));
    let tags: Vec<_> = policy.tags.iter().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(tags, ["A=x", "c=d"]);
    assert_eq!(policy.system_tags.as_ref().map(Vec::len), Some(2));
    assert_eq!(policy.drift, DriftPolicy::Report);
    let shared = ClusterProbe::Shared { port: 10_356, path: "/healthz".into() };
    assert_eq!(policy.cluster_probe, shared);
}

#[test]
fn an_agent_answers_at_its_own_port_and_only_for_nodes() {
    let with = |more: Value| {
        let mut config = small();
        for (key, value) in more.as_object().unwrap() {
            config[key] = value.clone();
        }
        read_value(&config)
    };
    let policy = |more| with(more).unwrap().policy;
    assert_eq!(policy(json!({})).health_check, HealthCheck::Proxy);
    assert_eq!(policy(json!({"healthCheck": "Proxy"})).health_check, HealthCheck::Proxy);
    let agent = |port, majority_percent| HealthCheck::Agent { port, majority_percent };
    assert_eq!(policy(json!({"healthCheck": "agent"})).health_check, agent(10_272, 50));
    let all = json!({"healthCheck": "agent", "healthCheckAgentPort": 10_300,
        "healthCheckMajorityPercent": 30, "clusterServiceLoadBalancerHealthProbeMode": "shared"});
    assert_eq!(policy(all.clone()).health_check, agent(10_300, 30));
    let idle = with(json!({"healthCheckAgentPort": 10_300, "healthCheckMajorityPercent": 30}));
    let idle = idle.unwrap().warnings;
    assert_eq!(idle.len(), 2);
    assert!(idle[0].ends_with("no effect without healthCheck: agent"), "{idle:?}");
    for (key, value) in [
        ("clusterServiceSharedLoadBalancerHealthProbePort", json!(10_356)),
        ("clusterServiceSharedLoadBalancerHealthProbePath", json!("/ready")),
    ] {
        let mut both = all.clone();
        both[key] = value;
        let errors = with(both).unwrap_err();
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].to_string().contains(key), "{errors:?}");
    }
    let table = [
        (json!({"healthCheck": "x"}), r#"healthCheck is "x" -> one of proxy, agent"#),
        (
            json!({"healthCheck": "agent", "healthCheckAgentPort": 443}),
            "healthCheckAgentPort is 443 -> a whole number from 1024 to 65535",
        ),
        (
            json!({"healthCheck": "agent", "healthCheckAgentPort": 10256}),
            "healthCheckAgentPort is \"10256\" -> a port that nothing else on nodes listens on; \
             10256 is kube-proxy's",
        ),
        (
            json!({"healthCheck": "agent", "healthCheckMajorityPercent": 101}),
            "healthCheckMajorityPercent is 101 -> a whole number from 1 to 100",
        ),
    ];
    for (more, message) in table {
        assert_eq!(wrong(more), message);
    }
    let container = json!({"healthCheck": "agent", "loadBalancerSku": "service",
        "loadBalancerBackendPoolConfigurationType": "podIP", "serviceGatewayEnabled": true});
    let errors = with(container).unwrap_err();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].to_string().contains("whose backends are Pods"), "{errors:?}");
}

#[test]
fn the_environment_wins_and_secrets_are_not_printed() {
    let text = small().to_string();
    let config = parse(
        &text,
        &[("AZURE_TENANT_ID", "other"), ("AZURE_CLIENT_ID", "me"), ("AZURE_CLIENT_SECRET", "hush")],
    );
    assert_eq!(config.settings.tenant_id.as_deref(), Some("other"));
    assert_eq!(config.settings.client_id.as_deref(), Some("me"));
    let Credential::ClientSecret(secret) = &config.settings.credential else { panic!() };
    assert_eq!(secret.expose(), "hush");
    assert!(!format!("{config:?}").contains("hush"));
    let config = parse(&text, &[("AZURE_FEDERATED_TOKEN_FILE", "/token")]);
    let token = Credential::FederatedToken { file: "/token".to_owned() };
    assert_eq!(config.settings.credential, token);
}

#[test]
fn credentials_have_an_order() {
    let credential = |changes| read_value(&with(changes)).unwrap().settings.credential;
    let managed = credential(json!({"useManagedIdentityExtension": true,
        "userAssignedIdentityID": "id"}));
    assert_eq!(managed, Credential::ManagedIdentity { user_assigned: Some("id".to_owned()) });
    let certificate = credential(json!({"aadClientSecret": null, "aadClientCertPath": "/c"}));
    assert!(matches!(certificate, Credential::ClientCertificate { path, .. } if path == "/c"));
    let token = credential(json!({"useFederatedWorkloadIdentityExtension": true,
        "aadFederatedTokenFile": "/t", "useManagedIdentityExtension": true}));
    assert_eq!(token, Credential::FederatedToken { file: "/t".to_owned() });
}

#[test]
fn tags_that_are_none_are_left_out_and_named() {
    let config = read_value(&with(json!({"tags": "a=b,c,d=e=f,=x, n= null ,"}))).unwrap();
    let tags: Vec<_> = config.policy.tags.iter().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(tags, ["a=b", "n= null "]);
    assert_eq!(config.warnings.len(), 3);
    assert_eq!(config.warnings[0], r#"tags: "c" is no key=value and is left out"#);
}

/// The Go cloud provider fills the pools under a word in other letters.
#[test]
fn preconfigured_pools_are_named_in_small_letters() {
    for (kind, is, warnings) in [
        ("internal", Preconfigured::Internal, 0),
        ("external", Preconfigured::External, 0),
        ("all", Preconfigured::All, 0),
        ("", Preconfigured::None, 0),
        ("Internal", Preconfigured::None, 1),
        ("ALL", Preconfigured::None, 1),
    ] {
        let changes = json!({"preConfiguredBackendPoolLoadBalancerTypes": kind});
        let config = read_value(&with(changes)).unwrap();
        assert_eq!((config.policy.preconfigured, config.warnings.len()), (is, warnings), "{kind}");
    }
}

#[test]
fn keys_that_mean_nothing_are_named_once() {
    let config = read_value(&with(json!({
        "loadBalancerSkuu": "standard", "banana": 1, "vmssCacheTTLInSeconds": 5,
        "loadBalancerRateLimit": {}, "routeTableName": "rt",
    })))
    .unwrap();
    let reason = ", where limits are learnt from Azure's answers";
    insta::assert_snapshot!(config.warnings.join("\n").replace(reason, ""), @r"
    without effect here: loadBalancerRateLimit, vmssCacheTTLInSeconds
    unknown keys: banana, loadBalancerSkuu (did you mean loadBalancerSku?)
    ");
}

#[test]
fn everything_that_is_missing_is_said_at_once() {
    insta::assert_snapshot!(errors(&json!({})), @r"
    subscriptionId missing: the subscription of the nodes
    resourceGroup missing: the cluster's resource group
    securityGroupName missing: the security group to open for Services
    location missing: the Azure region, as in eastus
    ");
    assert_eq!(
        errors(&json!([])),
        "cannot read the cloud config: it is no object of keys and values; it has to be one JSON \
         or YAML object"
    );
}

#[test]
fn a_message_says_where_it_is_from() {
    let errors = read_value(&with(json!({"location": null}))).unwrap_err();
    assert_eq!(
        errors[0].to_string(),
        "cloud config: location is not set; it is needed: the Azure region, as in eastus"
    );
    let errors = read_value(&with(json!({"vmType": "mainframe"}))).unwrap_err();
    assert_eq!(
        errors[0].to_string(),
        r#"cloud config: vmType: must be one of vmss, vmssflex, standard (got "mainframe")"#
    );
}

#[test]
fn every_wrong_value_says_what_is_allowed() {
    let table = [
        (
            json!({"loadBalancerSku": "gold"}),
            r#"loadBalancerSku is "gold" -> one of standard, basic, service"#,
        ),
        (
            json!({"loadBalancerBackendPoolConfigurationType": "nic"}),
            "loadBalancerBackendPoolConfigurationType is \"nic\" -> \
             one of nodeIPConfiguration, nodeIP, podIP",
        ),
        (json!({"vmType": "x"}), r#"vmType is "x" -> one of vmss, vmssflex, standard"#),
        (
            json!({"cloudConfigType": "x"}),
            r#"cloudConfigType is "x" -> one of file, secret, merge"#,
        ),
        (
            json!({"identitySystem": "x"}),
            r#"identitySystem is "x" -> one of adfs, azure_ad, azuread"#,
        ),
        (json!({"driftPolicy": "x"}), r#"driftPolicy is "x" -> one of repair, report"#),
        (
            json!({"nodeDrainSeconds": 3601}),
            "nodeDrainSeconds is 3601 -> a whole number from 0 to 3600",
        ),
        (
            json!({"clusterServiceLoadBalancerHealthProbeMode": "x"}),
            r#"clusterServiceLoadBalancerHealthProbeMode is "x" -> one of servicenodeport, shared"#,
        ),
        (
            json!({"clusterServiceSharedLoadBalancerHealthProbePort": 70000}),
            "clusterServiceSharedLoadBalancerHealthProbePort is 70000 -> \
             a whole number from 0 to 65535",
        ),
        (
            json!({"clusterServiceSharedLoadBalancerHealthProbePath": "x"}),
            "clusterServiceSharedLoadBalancerHealthProbePath is \"x\" -> \
             a path that begins with a slash",
        ),
        (
            json!({"preConfiguredBackendPoolLoadBalancerTypes": "x"}),
            r#"preConfiguredBackendPoolLoadBalancerTypes is "x" -> one of internal, external, all"#,
        ),
        (
            json!({"maximumLoadBalancerRuleCount": -1}),
            "maximumLoadBalancerRuleCount is -1 -> a whole number from 0 to 1500",
        ),
        (
            json!({"disableOutboundSNAT": "maybe"}),
            r#"disableOutboundSNAT is "maybe" -> true or false"#,
        ),
        (json!({"vnetName": ["a"]}), r#"vnetName is ["a"] -> text"#),
        (
            json!({"tags": {"a": "b"}}),
            r#"tags is {"a":"b"} -> text such as a=b,c=d; an object belongs in tagsMap"#,
        ),
        (json!({"tagsMap": "a=b"}), r#"tagsMap is "a=b" -> an object of keys and texts"#),
        (json!({"tagsMap": {"a": 1}}), "tagsMap.a is 1 -> a key and a text"),
        (json!({"systemTags": 5}), "systemTags is 5 -> text, or texts separated by commas"),
        (
            json!({"aadClientSecret": ["hush"]}),
            "aadClientSecret is a value that is not shown -> text",
        ),
        (json!({"auxiliaryTokenProvider": 5}), "auxiliaryTokenProvider is 5 -> an object"),
    ];
    for (changes, want) in table {
        assert_eq!(wrong(changes), want);
    }
}

#[test]
fn what_does_not_go_together_is_said() {
    let together = "the container load balancer needs `loadBalancerSku: service`, \
                    `loadBalancerBackendPoolConfigurationType: podIP` and \
                    `serviceGatewayEnabled: true` together, or none of them";
    let pod = "loadBalancerBackendPoolConfigurationType";
    for changes in [
        json!({"loadBalancerSku": "service"}),
        json!({"serviceGatewayEnabled": true}),
        json!({pod: "podip"}),
        json!({"loadBalancerSku": "service", "serviceGatewayEnabled": true}),
        json!({"loadBalancerSku": "service", pod: "podIP"}),
        json!({"serviceGatewayEnabled": true, pod: "podIP"}),
    ] {
        assert_eq!(wrong(changes), together);
    }
    let several = "multipleStandardLoadBalancerConfigurations";
    let one = json!([{"name": "kubernetes", "primaryVMSet": "a"}]);
    let table = [
        (
            json!({"vmType": "standard", "disableAvailabilitySetNodes": true}),
            "disableAvailabilitySetNodes: true goes only with vmType: vmss",
        ),
        (
            json!({several: one, pod: "nodeIP", "enableMultipleStandardLoadBalancers": true}),
            "multipleStandardLoadBalancerConfigurations and \
             enableMultipleStandardLoadBalancers: true cannot both be set",
        ),
        (
            json!({several: one}),
            "multipleStandardLoadBalancerConfigurations needs \
             `loadBalancerBackendPoolConfigurationType: nodeIP`",
        ),
        (
            json!({several: [{"name": "other", "primaryVMSet": "a"}], pod: "nodeIP"}),
            "multipleStandardLoadBalancerConfigurations[].name \"kubernetes\" missing: \
             one load balancer has to bear the cluster's name",
        ),
        (
            json!({"networkResourceTenantID": "u", "useManagedIdentityExtension": true}),
            "networkResourceTenantID with a managed identity needs \
             auxiliaryTokenProvider",
        ),
        (
            json!({"aadClientSecret": null, "cloudConfigType": "file"}),
            "there is no credential: set one, or useInstanceMetadata: true, or \
             another cloudConfigType than file",
        ),
        (json!({"aadClientId": null}), "aadClientId missing: the credential is that of a client"),
        (
            json!({"useFederatedWorkloadIdentityExtension": true}),
            "aadFederatedTokenFile missing: \
             useFederatedWorkloadIdentityExtension: true reads the token from it",
        ),
        (
            json!({pod: "nodeIP", "vnetName": null}),
            "vnetName missing: the virtual network that pool \
             addresses lie in",
        ),
    ];
    for (changes, want) in table {
        assert_eq!(wrong(changes), want);
    }
}

#[test]
fn the_container_load_balancer_refuses_what_it_has_no_use_for() {
    let gateway = json!({"loadBalancerSku": "Service", "serviceGatewayEnabled": true,
        "loadBalancerBackendPoolConfigurationType": "podIP", "securityGroupName": null,
        "subnetName": null});
    let mut changes = gateway.clone();
    let right = read_value(&with(changes.clone())).unwrap();
    assert_eq!(right.policy.layout, Layout::PerService);
    assert_eq!(right.warnings, Vec::<String>::new());
    changes.as_object_mut().unwrap().extend([
        ("disableOutboundSNAT".to_owned(), json!(true)),
        ("enableMigrateToIPBasedBackendPoolAPI".to_owned(), json!(true)),
        ("enableMultipleStandardLoadBalancers".to_owned(), json!(true)),
        (
            "multipleStandardLoadBalancerConfigurations".to_owned(),
            json!([{"name": "kubernetes", "primaryVMSet": "a"}]),
        ),
    ]);
    let message = wrong(changes).replace("multipleStandardLoadBalancerConfigurations", "M");
    insta::assert_snapshot!(message.replace("loadBalancerSku: ", ""), @r"
    M goes only with standard
    M and enableMultipleStandardLoadBalancers: true cannot both be set
    enableMultipleStandardLoadBalancers: true goes only with standard
    disableOutboundSNAT: true goes only with standard
    enableMigrateToIPBasedBackendPoolAPI: true does not go with service, whose pools have no nodes
    ");
}

#[test]
fn basic_lives_on_only_where_azure_did_not_retire_it() {
    assert_eq!(
        wrong(json!({"loadBalancerSku": "basic"})),
        "loadBalancerSku is \"basic\" -> standard, because Azure retired Basic load balancers in \
         this cloud on 30 September 2025; set it to standard and see `ballast migrate --dry-run` \
         for what will move"
    );
    let stack = policy(json!({"loadBalancerSku": "basic", "cloud": "AzureStackCloud"}));
    assert_eq!(stack.layout, Layout::PerNodeSet { without_own: Vec::new() });
    assert_eq!(stack.exclude_control_plane, ControlPlane::Included);
    let addresses = json!({"loadBalancerSku": "basic", "cloud": "AzureStackCloud",
        "loadBalancerBackendPoolConfigurationType": "nodeIP"});
    assert_eq!(
        wrong(addresses),
        "`loadBalancerBackendPoolConfigurationType: nodeIP` needs `loadBalancerSku: standard`, \
         because pools of Basic load balancers take no addresses; leave it out, or set it to \
         nodeIPConfiguration"
    );
    for endpoint in ["http://127.0.0.1:8443/", "https://localhost", "http://[::1]:1"] {
        policy(json!({"loadBalancerSku": "basic", "resourceManagerEndpoint": endpoint}));
    }
    for endpoint in
        ["https://management.azure.com", "https://localhost.evil", "https://127.0.0.1@x"]
    {
        let changes = json!({"loadBalancerSku": "basic", "resourceManagerEndpoint": endpoint});
        assert_ne!(wrong(changes), "no error", "{endpoint}");
    }
}

#[test]
fn layouts_are_read() {
    let per_set = policy(json!({"enableMultipleStandardLoadBalancers": true,
        "nodepoolsWithoutDedicatedSLB": "a, b,"}));
    assert_eq!(per_set.layout, Layout::PerNodeSet { without_own: vec!["a".into(), "b".into()] });
    // It is about Standard load balancers: on Basic ones each set keeps its own.
    let basic = policy(json!({"loadBalancerSku": "basic", "nodepoolsWithoutDedicatedSLB": "a",
        "resourceManagerEndpoint": "http://127.0.0.1:8443/"}));
    assert_eq!(basic.layout, Layout::PerNodeSet { without_own: Vec::new() });
    let several = policy(json!({
        "loadBalancerBackendPoolConfigurationType": "nodeIP",
        "multipleStandardLoadBalancerConfigurations": [
            {"name": "kubernetes", "primaryVMSet": "vmss", "activeNodes": []},
            {"name": "lb2", "primaryVMSet": "vmss2", "allowServicePlacement": false,
                "serviceLabelSelector": {"matchLabels": {"a": "b"}, "matchExpressions": [
                    {"key": "k", "operator": "NotIn", "values": ["x", "y"]}]},
                "nodeSelector": {}}]
    }));
    let Layout::Several(configs) = &several.layout else { panic!("{:?}", several.layout) };
    assert_eq!(configs[0].placement, Placement::Allowed);
    assert_eq!(configs[1].placement, Placement::Closed);
    let services = configs[1].services.as_ref().unwrap();
    assert_eq!(services.labels.len(), 1);
    assert_eq!(services.expressions[0].operator, Operator::NotIn);
    assert_eq!(configs[1].nodes, None, "an empty one");
    assert_eq!(configs[1].namespaces, None);
}

#[test]
fn a_mistake_in_a_list_says_where() {
    let message = wrong(json!({
        "loadBalancerBackendPoolConfigurationType": "nodeIP",
        "multipleStandardLoadBalancerConfigurations": [
            {"name": "kubernetes", "primaryVMSet": "vmss"},
            {"name": "KUBERNETES", "primaryVMSet": "VMSS", "nodeSelector": {
                "matchExpressions": [{"key": "k", "operator": "in"},
                    {"key": "k", "operator": "In"}, {"operator": "Exists", "values": ["x"]}]}},
            {"serviceLabelSelector": 5},
            7]
    }));
    insta::assert_snapshot!(message.replace("multipleStandardLoadBalancerConfigurations", "M"), @r#"
    M[1].nodeSelector.matchExpressions[0].operator is "in" -> In, NotIn, Exists or DoesNotExist
    M[1].nodeSelector.matchExpressions[1].values missing: In and NotIn compare with them
    M[1].nodeSelector.matchExpressions[2].key missing: a label's key
    M[1].nodeSelector.matchExpressions[2]: Exists and DoesNotExist take no values
    M[2].name missing: the load balancer's name
    M[2].primaryVMSet missing: the nodes that belong to it
    M[2].serviceLabelSelector is 5 -> an object
    M[3] is 7 -> an object
    M[1].name is "KUBERNETES" -> a name that no other one has
    M[1].primaryVMSet is "VMSS" -> a set that no other one has
    "#);
}

#[test]
fn clouds_and_edge_zones_are_read() {
    let settings = |changes| read_value(&with(changes)).unwrap().settings;
    assert_eq!(settings(json!({"cloud": "AzureChinaCloud"})).cloud, Cloud::China);
    assert_eq!(settings(json!({"cloud": "azureusgovernmentcloud"})).cloud, Cloud::UsGovernment);
    let stack = settings(json!({"cloud": "AZURESTACKCLOUD"}));
    assert_eq!(stack.stack_quirks, StackQuirks::Kept);
    let off = settings(json!({"cloud": "AZURESTACKCLOUD", "disableAzureStackCloud": true}));
    assert_eq!(off.stack_quirks, StackQuirks::Off);
    let odd = read_value(&with(json!({"cloud": "moon", "extendedLocationName": "z"}))).unwrap();
    assert_eq!((odd.settings.cloud, odd.warnings.len()), (Cloud::Public, 2));
    let edge = policy(json!({"extendedLocationName": "z", "extendedLocationType": "edgezone"}));
    assert_eq!(edge.edge_zone.as_deref(), Some("z"));
}

#[test]
fn no_text_makes_reading_panic() {
    for text in ["", "{", "\u{feff}{}", "a: [", "- a", "{\"a\":1,\"A\":2}", "null", "&a [*a]"] {
        let environment = BTreeMap::new();
        let _ = read(&Sources { text, cluster: "k", environment: &environment });
    }
}

#[test]
fn a_broken_file_is_told_without_the_secret_beside_the_mistake() {
    let text = "aadClientId: client\naadClientSecret: hunter2-hunter2\ns";
    let environment = BTreeMap::new();
    let errors = read(&Sources { text, cluster: "k", environment: &environment }).unwrap_err();
    let told = errors[0].to_string();
    assert!(told.contains("line 3") && !told.contains("hunter2"), "{told}");
}
