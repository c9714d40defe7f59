//! Every rule that a Service can break has a manifest here that breaks it.

use crate::support::run;
use admission_rules::policies;
use ballast::lint::{BEYOND_MANIFESTS, Level, Lint, lint};
use ballast::manifest;
use ballast::render::admission::{objects, yaml};
use ballast::render::lint::sarif;
use model::Policy;
use model::report::Severity;
use observe::config;
use plan::ask::findings::RULES;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

const SINGLE: &str = "";
const BASIC: &str = r#", "resourceManagerEndpoint": "http://127.0.0.1:1/",
    "loadBalancerSku": "basic",
    "loadBalancerBackendPoolConfigurationType": "nodeIPConfiguration""#;
const NICS: &str = r#", "loadBalancerBackendPoolConfigurationType": "nodeIPConfiguration""#;
const PER_SET: &str = r#", "enableMultipleStandardLoadBalancers": true,
    "loadBalancerBackendPoolConfigurationType": "nodeIPConfiguration""#;
const SEVERAL: &str = r#", "multipleStandardLoadBalancerConfigurations": [
    {"name": "kubernetes", "primaryVMSet": "vmss"},
    {"name": "lb1", "primaryVMSet": "set1"}, {"name": "lb2", "primaryVMSet": "set2"}]"#;
const SELECTIVE: &str = r#", "multipleStandardLoadBalancerConfigurations": [
    {"name": "kubernetes", "primaryVMSet": "vmss",
     "serviceLabelSelector": {"matchLabels": {"tier": "edge"}}}]"#;
const STRICT: &str = r#", "tenancy": "strict""#;
const CONTAINER: &str = r#", "loadBalancerSku": "service", "serviceGatewayEnabled": true,
    "loadBalancerBackendPoolConfigurationType": "podIP""#;

fn policy(more: &str) -> Policy {
    let base = r#"{"tenantId": "t", "subscriptionId": "s", "resourceGroup": "rg",
        "location": "eastus", "vnetName": "vnet", "subnetName": "nodes",
        "securityGroupName": "nsg", "primaryScaleSetName": "vmss", "vmType": "vmss",
        "useManagedIdentityExtension": true"#;
    let defaults = match more.contains("loadBalancerBackendPoolConfigurationType") {
        true => "",
        false => r#", "loadBalancerBackendPoolConfigurationType": "nodeIP""#,
    };
    let sku =
        if more.contains("loadBalancerSku") { "" } else { r#", "loadBalancerSku": "standard""# };
    let text = format!("{base}{sku}{defaults}{more}}}");
    let environment = BTreeMap::new();
    let sources = config::Sources { text: &text, cluster: "kubernetes", environment: &environment };
    config::read(&sources).unwrap_or_else(|e| panic!("{more}: {e:?}")).policy
}

/// What `@link` stands for: an internal Service with a Private Link Service.
const LINK: &str = "@azure-pls-create: true\n@azure-load-balancer-internal: true";

/// A manifest; lines that begin with `@` are annotations (a key without `/` has the usual prefix),
/// all others belong to the spec.
fn manifest_of(lines: &str) -> String {
    let lines = lines.replace("@link", LINK);
    let lines: Vec<&str> =
        lines.lines().map(str::trim_end).filter(|l| !l.trim().is_empty()).collect();
    let (annotations, spec): (Vec<&str>, Vec<&str>) =
        lines.iter().partition(|line| line.trim_start().starts_with('@'));
    let mut text = String::from(
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n  annotations:\n    team: net\n",
    );
    for line in annotations {
        let (key, value) = line.trim_start()[1..].split_once(": ").unwrap();
        let key = match key.contains('/') {
            true => key.to_owned(),
            false => format!("service.beta.kubernetes.io/{key}"),
        };
        text.push_str(&format!("    {key}: \"{value}\"\n"));
    }
    text.push_str("spec:\n  type: LoadBalancer\n");
    if !spec.iter().any(|line| line.trim_start().starts_with("ports:")) {
        text.push_str("  ports:\n  - {name: http, port: 80, targetPort: 8080}\n");
    }
    for line in spec {
        text.push_str(&format!("  {}\n", line.trim_start()));
    }
    text
}

fn check(text: &str, policy: &Policy) -> Lint {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("web.yaml");
    fs::write(&path, text).unwrap();
    lint(&manifest::read(&[path]).unwrap(), policy, &BTreeSet::new()).unwrap()
}

/// Rule, cloud config, what is in the manifest.
const CASES: &[(&str, &str, &str)] = &[
    ("InvalidBoolean", SINGLE, "@azure-load-balancer-internal: yes"),
    ("UnknownAnnotation", SINGLE, "@azure-load-balancer-colour: true"),
    ("UnknownPort", SINGLE, "@port_81_no_lb_rule: true"),
    ("AnnotationIgnored", SINGLE, "@azure-load-balancer-internal-subnet: apps"),
    ("SharedRulesAlwaysOn", SINGLE, "@azure-shared-securityrule: true"),
    (
        "InvalidSubnet",
        SINGLE,
        "@azure-load-balancer-internal: true\n@azure-load-balancer-internal-subnet: vnet/apps",
    ),
    ("InvalidNodeSet", PER_SET, "@azure-load-balancer-mode: set/1"),
    ("ModeIgnored", SINGLE, "@azure-load-balancer-mode: __auto__"),
    ("UnknownConfiguration", SEVERAL, "@azure-load-balancer-configurations: lb9"),
    ("UnknownConfigurationName", SEVERAL, "@azure-load-balancer-configurations: lb1,lb9"),
    ("ConfigurationsIgnored", SINGLE, "@azure-load-balancer-configurations: lb1"),
    (
        "ConflictingPlacement",
        SEVERAL,
        "@azure-load-balancer-configurations: lb1\n@azure-load-balancer-ipv4: 20.1.2.3",
    ),
    ("InvalidPinnedAddress", SINGLE, "@azure-load-balancer-ipv4: 2603::1"),
    ("PrivatePinnedAddress", SINGLE, "loadBalancerIP: 10.0.0.9"),
    ("UnusedPinnedAddress", SINGLE, "@azure-load-balancer-ipv6: 2603::1"),
    ("InvalidAdditionalAddress", SINGLE, "@azure-additional-public-ips: 20.1.2.3,host"),
    ("ForbiddenAdditionalAddress", SINGLE, "@azure-additional-public-ips: 169.254.169.254"),
    ("InvalidSharingNamespace", SINGLE, "@ballast.dev/share-with-namespaces: Team A"),
    ("Paused", SINGLE, "@ballast.dev/pause: true"),
    ("ResourceGroupNotAllowed", STRICT, "@azure-load-balancer-resource-group: ips"),
    ("InvalidPublicIpName", SINGLE, "@azure-pip-name: rg/web"),
    ("InvalidPublicIpPrefix", SINGLE, "@azure-pip-prefix-id: prefix"),
    ("InvalidResourceGroup", SINGLE, "@azure-load-balancer-resource-group: a/b"),
    ("InvalidDnsLabel", SINGLE, "@azure-dns-label-name: My_Web"),
    ("MalformedTag", SINGLE, "@azure-pip-tags: team"),
    ("InvalidTag", SINGLE, "@azure-pip-tags: a/b=c"),
    ("ReservedTag", SINGLE, "@azure-pip-tags: k8s-azure-service=x"),
    (
        "TooManyTags",
        SINGLE,
        "@azure-pip-tags: a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1,m=1,n=1,o=1,\
         p=1,q=1,r=1,s=1,t=1,u=1,v=1,w=1,x=1,y=1,z=1,0=1,1=1,2=1,3=1,4=1,5=1,6=1,7=1,8=1,\
         9=1,aa=1,ab=1,ac=1,ad=1,ae=1,af=1,ag=1,ah=1,ai=1,aj=1,ak=1,al=1,am=1,an=1,ao=1",
    ),
    ("OverriddenTag", r#", "tags": "owner=netops""#, "@azure-pip-tags: owner=me"),
    ("InvalidIdleTimeout", SINGLE, "@azure-load-balancer-tcp-idle-timeout: 3"),
    ("UnsupportedSctp", SINGLE, "ports: [{port: 5000, protocol: SCTP}]"),
    (
        "NodePortsRequired",
        SINGLE,
        "@azure-disable-load-balancer-floating-ip: true\nallocateLoadBalancerNodePorts: false",
    ),
    ("InvalidProbeProtocol", SINGLE, "@port_80_health-probe_protocol: grpc"),
    ("InvalidProbePort", SINGLE, "@port_80_health-probe_port: admin"),
    ("InvalidProbeInterval", SINGLE, "@azure-load-balancer-health-probe-interval: 3"),
    ("InvalidProbeCount", SINGLE, "@azure-load-balancer-health-probe-num-of-probe: 1"),
    ("ProbeTooSlow", SINGLE, "@azure-load-balancer-health-probe-interval: 60"),
    (
        "InvalidRequestPath",
        SINGLE,
        "@azure-load-balancer-health-probe-protocol: http\n\
         @azure-load-balancer-health-probe-request-path: ready",
    ),
    ("InvalidServiceTag", SINGLE, "@azure-allowed-service-tags: 10.0.0.0/8"),
    ("EmptyServiceTags", SINGLE, "@azure-allowed-service-tags: Storage,"),
    ("InvalidSourceRange", SINGLE, "@azure-allowed-ip-ranges: 203.0.113.0/99"),
    (
        "ConflictingSourceRanges",
        SINGLE,
        "@azure-allowed-ip-ranges: 203.0.113.0/24\nloadBalancerSourceRanges: [198.51.100.0/24]",
    ),
    (
        "SourceRangesLimitTags",
        SINGLE,
        "@azure-allowed-service-tags: AzureCloud\nloadBalancerSourceRanges: [198.51.100.0/24]",
    ),
    ("SourceRangesOfOtherFamily", SINGLE, "@azure-allowed-ip-ranges: 2001:db8::/32"),
    ("DenyAllWithoutRanges", SINGLE, "@azure-deny-all-except-load-balancer-source-ranges: true"),
    ("PrivateLinkUnreachable", NICS, "@azure-pls-create: true"),
    ("PrivateLinkNeedsIpv4", NICS, "@link\nipFamilies: [IPv6]\nipFamilyPolicy: SingleStack"),
    ("PrivateLinkNeedsStandard", BASIC, "@link"),
    ("PrivateLinkNeedsNicPools", SINGLE, "@link"),
    ("PrivateLinkNotCreated", SINGLE, "@azure-pls-name: web"),
    ("InvalidPrivateLinkName", NICS, "@link\n@azure-pls-name: a/b"),
    ("InvalidPrivateLinkCount", NICS, "@link\n@azure-pls-ip-configuration-ip-address-count: 9"),
    ("InvalidPrivateLinkAddress", NICS, "@link\n@azure-pls-ip-configuration-ip-address: fd00::1"),
    (
        "TooManySubscriptions",
        NICS,
        "@link\n\
         @azure-pls-visibility: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 \
         22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 \
         48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64 65 66 67 68 69 70 71 72 73 \
         74 75 76 77 78 79 80 81 82 83 84 85 86 87 88 89 90 91 92 93 94 95 96 97 98 99 \
         100",
    ),
    ("InvalidPrivateLinkFqdn", NICS, "@link\n@azure-pls-fqdns: a.example,b.example"),
    ("InvalidSubscription", NICS, "@link\n@azure-pls-visibility: a,b"),
    (
        "AutoApprovalNotVisible",
        NICS,
        "@link\n@azure-pls-visibility: a\n@azure-pls-auto-approval: b",
    ),
    (
        "ProbeSettingIgnored",
        SINGLE,
        "externalTrafficPolicy: Local\nhealthCheckNodePort: 31000\n\
         @port_80_health-probe_protocol: tcp",
    ),
    ("NoEligibleLoadBalancer", SELECTIVE, ""),
    (
        "PortTaken",
        SINGLE,
        "@azure-load-balancer-internal: true\nports: [{name: a, port: 80}, {name: b, port: 80, \
         protocol: SCTP}]",
    ),
    ("UnsupportedInternalLoadBalancer", CONTAINER, "@azure-load-balancer-internal: true"),
    ("UnsupportedSessionAffinity", CONTAINER, "sessionAffinity: ClientIP"),
    ("UnsupportedLoadBalancerIP", CONTAINER, "loadBalancerIP: 20.1.2.3"),
    (
        "UnsupportedDualStack",
        CONTAINER,
        "ipFamilyPolicy: RequireDualStack\nipFamilies: [IPv4, IPv6]",
    ),
    ("UnsupportedProtocol", CONTAINER, "ports: [{port: 5000, protocol: SCTP}]"),
    (
        "UnsupportedBackendPortCollision",
        CONTAINER,
        "ports: [{name: a, port: 80, targetPort: 8080}, {name: b, port: 81, targetPort: 8080}]",
    ),
    ("InvalidFrontendPort", CONTAINER, "ports: [{port: 65535, targetPort: 80}]"),
    ("UnenforcedSources", CONTAINER, "loadBalancerSourceRanges: [203.0.113.0/24]"),
    ("IgnoredByContainerLoadBalancer", CONTAINER, "@azure-dns-label-name: web"),
];

/// Rules that no manifest breaks, and why.
const UNREACHABLE: &[(&str, &str)] = &[
    ("InvalidBackendPort", "the API server refuses a target port outside 1 to 65535"),
    ("ModeChanged", "needs a Service that stands"),
    ("UnknownNodeSet", "which node sets there are, only Azure knows"),
    ("DnsLabelTaken", "needs a second Service, or a public IP"),
    ("PrivateLinkOwned", "needs a second Service on the same frontend"),
    ("LoadBalancersFull", "needs load balancers with hundreds of rules"),
    ("PinnedLoadBalancerNotEligible", "needs a public IP on a load balancer"),
    ("LoadBalancerRuleLimit", "needs a load balancer with hundreds of rules"),
    ("LoadBalancerFrontendLimit", "needs a load balancer with hundreds of frontends"),
    ("NetworkInterfaceRuleLimit", "needs a load balancer with hundreds of rules"),
    ("LoadBalancerLimit", "needs a thousand load balancers"),
    ("BackendResourceLimit", "needs more than a hundred nodes"),
    ("PrivateLinkLimit", "needs eight other Services"),
    ("PoolAddressLimit", "needs a thousand nodes"),
    ("ServiceGatewayAddressTaken", "needs another namespace's EndpointSlices"),
    ("ServiceGatewayInvalidAddress", "needs EndpointSlices"),
    ("ServiceGatewayForeignPod", "needs EndpointSlices"),
    ("ServiceGatewayNoNode", "needs EndpointSlices"),
    ("ServiceGatewayUnknownNode", "needs EndpointSlices"),
    ("ServiceGatewayTornSlice", "needs EndpointSlices"),
    ("EndpointsOutsideCluster", "needs a migration"),
    ("HasBothAddresses", "needs a migration"),
    ("TargetPortUnknown", "needs EndpointSlices, or none"),
    ("TargetPortsDiffer", "needs EndpointSlices"),
    ("TargetPortShared", "needs EndpointSlices"),
    ("SecurityRuleLimit", "needs a security group with hundreds of rules"),
    ("SecurityRuleNameTaken", "needs somebody else's security rule"),
    ("SecurityGroupNotFound", "whether it is there, only Azure knows"),
    ("SubnetNotFound", "which subnets there are, only Azure knows"),
    ("NodePortTaken", "needs a rule in Azure that leads to another Service's node port"),
    ("PinnedAddressUnusable", "which addresses a subnet has, only Azure knows"),
    ("PinnedAddressNotFound", "which public IPs there are, only Azure knows"),
    ("AdditionalAddressTaken", "needs something else that has the address"),
    ("AddressNotShared", "needs another namespace's Service"),
    ("PrivateLinkNotShared", "needs another namespace's Service"),
    ("PublicIpNotAllowed", "whose a public IP is, only Azure knows"),
    ("PoolNameTaken", "needs a second Service, or a cluster of that name"),
    ("PublicIpOptionsIgnored", "needs a public IP that was brought, or a second Service"),
    ("PublicIpNotFound", "which public IPs there are, only Azure knows"),
    ("PublicIpGroupUnreadable", "which resource groups there are, only Azure knows"),
    ("PublicIpFamilyMismatch", "needs a public IP that was brought"),
    ("PublicIpSkuMismatch", "needs a public IP that was brought"),
    ("PublicIpInUse", "needs a public IP that was brought"),
    ("PrivateLinkBesideIpv6", "needs an IPv6 frontend of another Service"),
    ("Ipv6BesidePrivateLink", "needs a Private Link Service"),
    ("PublicIpForeign", "needs another cluster's public IP"),
    ("PrivateLinkForeign", "needs another cluster's Private Link Service"),
    ("PrivateLinkGroupUnreadable", "which resource groups there are, only Azure knows"),
    ("PrivateLinkGroupChanged", "needs a Private Link Service"),
    ("PrivateLinkNameChanged", "needs a Private Link Service"),
    ("PrivateLinkNameTaken", "needs a Private Link Service"),
    ("PrivateLinkConnected", "needs a Private Link Service"),
    ("DeletionProtected", "needs a Service that is being deleted"),
    ("ConfirmationDue", "needs a Service that stands"),
    ("ConfirmationLeft", "needs a Service that stands"),
    ("PrivateLinkAddressUnusable", "which addresses a subnet has, only Azure knows"),
    ("AddressPoolsBehindPrivateLink", "needs a Private Link Service"),
    ("NoBackends", "which nodes there are, only the cluster knows"),
    ("NoWayOut", "needs nodes, and their subnet"),
    ("PoolMembersUnreadable", "needs an Azure that refuses a read"),
    ("PoolKindSwitching", "needs pools of the other kind"),
    ("IpTagsOfSharedPublicIp", "needs a public IP"),
    ("BasicPublicIpInUse", "needs a Basic public IP"),
    ("BasicLoadBalancerCannotBeReplaced", "needs a Basic load balancer"),
    ("StandardCannotBecomeBasic", "needs a Standard load balancer"),
];

#[test]
fn every_rule_has_a_manifest_that_breaks_it() {
    for rule in RULES {
        if UNREACHABLE.iter().any(|(name, _)| *name == rule.name) {
            continue;
        }
        let case = CASES.iter().find(|(name, ..)| *name == rule.name);
        let (name, config, lines) = case.unwrap_or_else(|| panic!("no manifest for {}", rule.name));
        let text = manifest_of(lines);
        let found = check(&text, &policy(config));
        let mistake = found.mistakes.iter().find(|m| m.rule == *name);
        let mistake = mistake.unwrap_or_else(|| panic!("{name}: {:?}\n{text}", found.mistakes));
        let level = match rule.severity {
            Severity::Note | Severity::Hold => Level::Warning,
            Severity::Refusal => Level::Error,
        };
        assert_eq!(mistake.level, level, "{name}");
        let line = text.lines().nth(usize::try_from(mistake.line).unwrap() - 1).unwrap();
        let last = match mistake.key.contains('/') {
            true => mistake.key.as_str(),
            false => mistake.key.rsplit('.').next().unwrap(),
        };
        // What is not there is told where the object's name stands.
        let last = if text.contains(last) { last } else { "name" };
        let column = usize::try_from(mistake.column).unwrap() - 1;
        assert!(line[column..].starts_with(last), "{name}: {line:?} at {column}");
    }
    for (name, ..) in CASES {
        assert!(RULES.iter().any(|r| r.name == *name), "{name} is no rule");
    }
}

#[test]
fn a_sound_manifest_has_no_mistakes() {
    for config in [SINGLE, NICS, BASIC, PER_SET, SEVERAL, CONTAINER] {
        let found = check(&manifest_of(""), &policy(config));
        assert_eq!((found.services, found.mistakes), (1, Vec::new()), "{config}");
    }
}

#[test]
fn what_only_azure_knows_is_no_mistake() {
    let internal = "@azure-load-balancer-internal: true\n";
    let subnet = format!("{internal}@azure-load-balancer-internal-subnet: apps");
    let lines = ["@azure-pip-name: existing-ip", "@azure-load-balancer-ipv4: 20.1.2.3", &subnet];
    for lines in lines {
        assert_eq!(check(&manifest_of(lines), &policy(SINGLE)).mistakes, [], "{lines}");
    }
    let set = check(&manifest_of("@azure-load-balancer-mode: set9"), &policy(PER_SET));
    assert_eq!(set.mistakes, []);
    for rule in BEYOND_MANIFESTS {
        assert!(UNREACHABLE.iter().any(|(name, _)| *name == rule), "{rule}");
    }
}

#[test]
fn what_a_server_refuses_is_a_mistake_and_the_rest_is_still_checked() {
    let mut text = manifest_of("ports: [{port: 99999}]");
    text.push_str("---\n");
    text.push_str(&manifest_of("@azure-load-balancer-tcp-idle-timeout: 3").replace("web", "api"));
    let found = check(&text, &policy(SINGLE));
    let rules: Vec<&str> = found.mistakes.iter().map(|m| m.rule.as_str()).collect();
    assert_eq!(rules, ["InvalidManifest", "InvalidIdleTimeout"]);
    assert_eq!(found.mistakes[0].object, "Service default/web");
    assert_eq!(found.mistakes[1].object, "Service default/api");
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_the_others_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir_all(path("charts/web")).unwrap();
    fs::create_dir(path(".git")).unwrap();
    let wrong = manifest_of("@azure-load-balancer-tcp-idle-timeout: 3");
    fs::write(path("a.yaml"), "kind: Service\nmetadata: [web\n").unwrap();
    fs::write(path("b.yaml"), "metadata:\n  name: {{ .Values.name }}\n  a: b: c\n").unwrap();
    fs::write(path("c.yaml"), &wrong).unwrap();
    fs::write(path("charts/web/d.yaml"), wrong.replace("web", "api")).unwrap();
    let ask = |more: &[&str]| {
        let words = ["lint", "-f", folder.path().to_str().unwrap()];
        run(&[&words[..], more].concat())
    };
    let (code, out, err) = ask(&[]);
    assert_eq!(code, 1, "{out}{err}");
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 5, "{out}");
    assert!(lines[0].contains("c.yaml:7:5: error: Service default/web: "), "{out}");
    assert!(lines[1].contains("a.yaml:") && lines[1].ends_with("[UnreadableManifest]"), "{out}");
    let helm = "`helm template CHART | ballast lint -f -`";
    assert!(lines[2].contains("b.yaml:") && lines[2].contains(helm), "{out}");
    let skipped = format!("not checked: {}; --recursive checks", path("charts").display());
    assert!(lines[3].starts_with(&skipped), "{out}");
    assert_eq!(lines[4], "1 Service: 3 errors, 0 warnings");
    let (code, out, _) = ask(&["-R"]);
    assert!(code == 1 && out.contains("charts/web/d.yaml:7:5: error: "), "{out}");
    assert!(out.ends_with("2 Services: 4 errors, 0 warnings\n"), "{out}");
    assert!(!out.contains("not checked"), "{out}");
    let (_, out, _) = ask(&["-o", "json"]);
    let found: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(found["skipped"][0], path("charts").to_str().unwrap());
    assert_eq!(found["mistakes"][1]["rule"], "UnreadableManifest");
}

#[test]
fn sarif_names_rule_file_and_line() {
    let found = check(&manifest_of("@azure-load-balancer-tcp-idle-timeout: 3"), &policy(SINGLE));
    let log = sarif(&found);
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    assert_eq!(run["tool"]["driver"]["rules"][0]["id"], "InvalidIdleTimeout");
    let result = &run["results"][0];
    assert_eq!(
        (&result["ruleId"], &result["level"]),
        (&"InvalidIdleTimeout".into(), &"error".into())
    );
    let region = &result["locations"][0]["physicalLocation"]["region"];
    assert_eq!((&region["startLine"], &region["startColumn"]), (&7.into(), &5.into()));
}

#[test]
fn the_policy_in_deploy_is_the_one_in_the_code() {
    let objects = objects(&policies(&policy(SINGLE)), &BTreeSet::new());
    let text = yaml(&objects).unwrap();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/admission/policy.yaml");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(path, &text).unwrap();
    }
    assert!(fs::read_to_string(path).unwrap() == text, "UPDATE_DOCS=1 writes {path} anew");
    let read: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    assert_eq!(read, objects, "a reader of YAML gets what was written");
}
