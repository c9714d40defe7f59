//! Every finding about a Service: first what reading it can yield, then what Azure and the cluster
//! can.

use model::report::Severity;

/// A rule that a Service can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FindingRule {
    /// Its stable name.
    pub name: &'static str,
    /// What breaking it means.
    pub severity: Severity,
    /// Something that breaks it.
    pub example: &'static str,
    /// What is allowed.
    pub allowed: &'static str,
}

macro_rules! rules {
    ($($constant:ident $severity:ident $name:literal $example:literal $allowed:literal;)*) => {
        $(
            #[doc = concat!("`", $name, "`: ", $allowed, ".")]
            pub const $constant: FindingRule = FindingRule {
                name: $name,
                severity: Severity::$severity,
                example: $example,
                allowed: $allowed,
            };
        )*

        /// All rules.
        pub const RULES: &[FindingRule] = &[$($constant),*];
    };
}

rules! {
    INVALID_BOOLEAN Note "InvalidBoolean"
        "azure-pls-create: yes"
        "true or false; anything else counts as false";
    UNKNOWN_ANNOTATION Note "UnknownAnnotation"
        "azure-load-balancer-intern: true"
        "a key of the annotation reference";
    UNKNOWN_PORT Note "UnknownPort"
        "port_81_no_lb_rule: true"
        "the number of a port of the Service in the key";
    ANNOTATION_IGNORED Note "AnnotationIgnored"
        "azure-load-balancer-internal-subnet: apps"
        "nothing: it does not count on this load balancer";
    SHARED_RULES_ALWAYS_ON Note "SharedRulesAlwaysOn"
        "azure-shared-securityrule: true"
        "anything: equal security rules are always shared";

    INVALID_SUBNET Refusal "InvalidSubnet"
        "azure-load-balancer-internal-subnet: vnet/apps"
        "the name of a subnet of the cluster's virtual network";
    INVALID_NODE_SET Refusal "InvalidNodeSet"
        "azure-load-balancer-mode: set/1"
        "__auto__ or the name of a scale set or availability set";
    MODE_IGNORED Note "ModeIgnored"
        "azure-load-balancer-mode: __auto__"
        "nothing: only counts where each node set has a load balancer of its own";
    UNKNOWN_CONFIGURATION Refusal "UnknownConfiguration"
        "azure-load-balancer-configurations: lb9"
        "names from multipleStandardLoadBalancerConfigurations";
    UNKNOWN_CONFIGURATION_NAME Note "UnknownConfigurationName"
        "azure-load-balancer-configurations: lb1,lb9"
        "names from multipleStandardLoadBalancerConfigurations; others do not count";
    CONFIGURATIONS_IGNORED Note "ConfigurationsIgnored"
        "azure-load-balancer-configurations: lb1"
        "nothing: only counts with multipleStandardLoadBalancerConfigurations";
    CONFLICTING_PLACEMENT Refusal "ConflictingPlacement"
        "azure-load-balancer-configurations: lb1"
        "nothing beside a pinned address or public IP, which decides the load balancer";

    INVALID_PINNED_ADDRESS Refusal "InvalidPinnedAddress"
        "azure-load-balancer-ipv4: fd00::1"
        "an IP address of the family";
    PRIVATE_PINNED_ADDRESS Refusal "PrivatePinnedAddress"
        "azure-load-balancer-ipv4: 10.0.0.9"
        "a public unicast address, as the load balancer is public";
    UNUSED_PINNED_ADDRESS Note "UnusedPinnedAddress"
        "azure-load-balancer-ipv6: fd00::1"
        "an address of a family that the Service has";
    INVALID_ADDITIONAL_ADDRESS Refusal "InvalidAdditionalAddress"
        "azure-additional-public-ips: 20.1.2.3,host"
        "IP addresses, separated by commas";
    INVALID_PUBLIC_IP_NAME Refusal "InvalidPublicIpName"
        "azure-pip-name: rg/web"
        "the name of a public IP";
    INVALID_PUBLIC_IP_PREFIX Refusal "InvalidPublicIpPrefix"
        "azure-pip-prefix-id: prefix"
        "/subscriptions/…/resourceGroups/…/providers/Microsoft.Network/publicIPPrefixes/…";
    INVALID_RESOURCE_GROUP Refusal "InvalidResourceGroup"
        "azure-load-balancer-resource-group: a/b"
        "the name of a resource group";
    INVALID_DNS_LABEL Refusal "InvalidDnsLabel"
        "azure-dns-label-name: My_Web"
        "3 to 63 lower-case letters, digits and dashes, from a letter to a letter or digit";
    MALFORMED_TAG Note "MalformedTag"
        "azure-pip-tags: team"
        "entries with exactly one =, separated by commas; others do not count";
    INVALID_TAG Refusal "InvalidTag"
        "azure-pip-tags: a/b=c"
        "keys up to 512 characters without <>%&\\?/ and values up to 256";
    TOO_MANY_TAGS Refusal "TooManyTags"
        "azure-pip-tags: 51 tags"
        "at most 50 tags, as many as a resource takes";
    RESERVED_TAG Note "ReservedTag"
        "azure-pip-tags: k8s-azure-service=x"
        "keys that do not begin with k8s-azure-; those do not count";

    INVALID_IDLE_TIMEOUT Refusal "InvalidIdleTimeout"
        "azure-load-balancer-tcp-idle-timeout: 3"
        "a whole number of minutes from 4 to 100";
    UNSUPPORTED_SCTP Refusal "UnsupportedSctp"
        "spec.ports: SCTP/5000"
        "TCP and UDP; SCTP only on internal Standard load balancers";
    NODE_PORTS_REQUIRED Refusal "NodePortsRequired"
        "spec.allocateLoadBalancerNodePorts: false"
        "true: without floating IP backends are reached on node ports";

    INVALID_PROBE_PROTOCOL Note "InvalidProbeProtocol"
        "port_80_health-probe_protocol: grpc"
        "tcp, http or https; anything else counts as tcp";
    INVALID_PROBE_PORT Refusal "InvalidProbePort"
        "port_80_health-probe_port: admin"
        "the name or number of a port of the Service, or a number from 1 to 65535";
    INVALID_PROBE_INTERVAL Refusal "InvalidProbeInterval"
        "azure-load-balancer-health-probe-interval: 3"
        "a whole number of seconds, 5 or more";
    INVALID_PROBE_COUNT Refusal "InvalidProbeCount"
        "azure-load-balancer-health-probe-num-of-probe: 1"
        "a whole number, 2 or more";
    PROBE_TOO_SLOW Refusal "ProbeTooSlow"
        "azure-load-balancer-health-probe-interval: 60"
        "an interval that times the count is less than 120 seconds";
    INVALID_REQUEST_PATH Refusal "InvalidRequestPath"
        "azure-load-balancer-health-probe-request-path: ready"
        "a path that begins with /";

    INVALID_SERVICE_TAG Refusal "InvalidServiceTag"
        "azure-allowed-service-tags: 10.0.0.0/8"
        "service tags, separated by commas; ranges go into azure-allowed-ip-ranges";
    EMPTY_SERVICE_TAGS Note "EmptyServiceTags"
        "azure-allowed-service-tags: ,"
        "service tags, separated by commas; empty ones do not count";
    INVALID_SOURCE_RANGE Refusal "InvalidSourceRange"
        "azure-allowed-ip-ranges: 203.0.113.0/99"
        "ranges as in 203.0.113.0/24, whose host bits are zero";
    CONFLICTING_SOURCE_RANGES Refusal "ConflictingSourceRanges"
        "azure-allowed-ip-ranges: 203.0.113.0/24"
        "ranges either here or in spec.loadBalancerSourceRanges";
    SOURCE_RANGES_LIMIT_TAGS Note "SourceRangesLimitTags"
        "azure-allowed-service-tags: AzureCloud"
        "tags whose addresses are in the source ranges, too: kube-proxy drops all others";
    DENY_ALL_WITHOUT_RANGES Note "DenyAllWithoutRanges"
        "azure-deny-all-except-load-balancer-source-ranges: true"
        "only counts beside source ranges";

    PRIVATE_LINK_UNREACHABLE Refusal "PrivateLinkUnreachable"
        "azure-pls-create: true"
        "only on an internal load balancer, or with floating IP disabled";
    PRIVATE_LINK_NEEDS_IPV4 Refusal "PrivateLinkNeedsIpv4"
        "azure-pls-create: true"
        "only on a Service of IPv4 alone";
    PRIVATE_LINK_NEEDS_STANDARD Refusal "PrivateLinkNeedsStandard"
        "azure-pls-create: true"
        "only on Standard load balancers";
    PRIVATE_LINK_NEEDS_NIC_POOLS Refusal "PrivateLinkNeedsNicPools"
        "azure-pls-create: true"
        "only where nodes join pools through their network interfaces (nodeIPConfiguration)";
    PRIVATE_LINK_NOT_CREATED Note "PrivateLinkNotCreated"
        "azure-pls-name: web"
        "only counts together with azure-pls-create: true";
    INVALID_PRIVATE_LINK_NAME Refusal "InvalidPrivateLinkName"
        "azure-pls-name: a/b"
        "1 to 80 letters, digits, dots, dashes and underscores";
    INVALID_PRIVATE_LINK_COUNT Refusal "InvalidPrivateLinkCount"
        "azure-pls-ip-configuration-ip-address-count: 9"
        "a whole number from 1 to 8, and no less than there are static addresses";
    INVALID_PRIVATE_LINK_ADDRESS Refusal "InvalidPrivateLinkAddress"
        "azure-pls-ip-configuration-ip-address: fd00::1"
        "IPv4 addresses, each once, separated by blanks";
    INVALID_PRIVATE_LINK_FQDN Refusal "InvalidPrivateLinkFqdn"
        "azure-pls-fqdns: a.example,b.example"
        "host names, separated by blanks";
    INVALID_SUBSCRIPTION Refusal "InvalidSubscription"
        "azure-pls-visibility: a,b"
        "subscription ids, separated by blanks; or *";
    TOO_MANY_SUBSCRIPTIONS Refusal "TooManySubscriptions"
        "azure-pls-visibility: 101 subscriptions"
        "at most 100 subscriptions";

    UNSUPPORTED_INTERNAL Refusal "UnsupportedInternalLoadBalancer"
        "azure-load-balancer-internal: true"
        "false: container load balancers are public";
    UNSUPPORTED_AFFINITY Refusal "UnsupportedSessionAffinity"
        "spec.sessionAffinity: ClientIP"
        "None";
    UNSUPPORTED_ADDRESS Refusal "UnsupportedLoadBalancerIP"
        "spec.loadBalancerIP: 20.1.2.3"
        "nothing: container load balancers choose their address";
    UNSUPPORTED_DUAL_STACK Refusal "UnsupportedDualStack"
        "spec.ipFamilies: IPv4,IPv6"
        "one family";
    UNSUPPORTED_NAMED_TARGET Refusal "UnsupportedNamedTargetPort"
        "spec.ports: targetPort http"
        "a number as target port";
    UNSUPPORTED_PROTOCOL Refusal "UnsupportedProtocol"
        "spec.ports: SCTP/5000"
        "TCP and UDP";
    BACKEND_COLLISION Refusal "UnsupportedBackendPortCollision"
        "spec.ports: TCP/8080"
        "one port for each protocol and target port";
    INVALID_FRONTEND_PORT Refusal "InvalidFrontendPort"
        "spec.ports: 65535"
        "a port from 1 to 65534";
    INVALID_BACKEND_PORT Refusal "InvalidBackendPort"
        "spec.ports: targetPort 0"
        "a target port from 1 to 65535";
    IGNORED_BY_CONTAINER Note "IgnoredByContainerLoadBalancer"
        "azure-dns-label-name: web"
        "nothing: it has no effect on container load balancers";

    UNKNOWN_NODE_SET Refusal "UnknownNodeSet"
        "azure-load-balancer-mode: set9"
        "__auto__ or a scale set or availability set that nodes are in";
    LOAD_BALANCERS_FULL Refusal "LoadBalancersFull"
        "spec.ports: 20 rules"
        "as many rules as a load balancer that the Service may be on has room for";
    NO_ELIGIBLE_LOAD_BALANCER Refusal "NoEligibleLoadBalancer"
        "azure-load-balancer-configurations: lb2"
        "labels and a namespace that the selectors of at least one configuration take";
    PINNED_NOT_ELIGIBLE Refusal "PinnedLoadBalancerNotEligible"
        "azure-load-balancer-ipv4: 20.1.2.3"
        "an address on a load balancer that the Service may be on";
    LOAD_BALANCER_RULE_LIMIT Refusal "LoadBalancerRuleLimit"
        "spec.ports: 20 rules"
        "at most 1,500 rules a load balancer; 250 on Basic";
    LOAD_BALANCER_FRONTEND_LIMIT Refusal "LoadBalancerFrontendLimit"
        "spec.type: 1 frontends"
        "at most 600 frontends a load balancer; 200 on Basic";
    NETWORK_INTERFACE_RULE_LIMIT Refusal "NetworkInterfaceRuleLimit"
        "spec.ports: 20 rules"
        "at most 300 rules a network interface, where nodes join pools through theirs";
    LOAD_BALANCER_LIMIT Refusal "LoadBalancerLimit"
        "spec.type: load balancer kubernetes-internal"
        "at most 1,000 load balancers a subscription";
    BACKEND_RESOURCE_LIMIT Note "BackendResourceLimit"
        "nodes: 160 scale sets, availability sets and single VMs"
        "at most 150 behind a load balancer where nodes join through their network interfaces; \
         the others get no traffic from it";
    PRIVATE_LINK_LIMIT Refusal "PrivateLinkLimit"
        "azure-pls-create: true"
        "at most 8 Private Link Services a load balancer and 800 a subscription";
    POOL_ADDRESS_LIMIT Note "PoolAddressLimit"
        "nodes: 1200"
        "at most 1,000 members a pool, addresses or network interfaces, 300 on Basic; other nodes \
         get no traffic from it";
    SECURITY_RULE_LIMIT Refusal "SecurityRuleLimit"
        "spec.ports: one more security rule"
        "at most 1,000 rules and 4,000 source and destination prefixes a security group";
    SECURITY_RULE_NAME_TAKEN Refusal "SecurityRuleNameTaken"
        "spec.ports: k8s-azure-lb_allow_IPv4_d39272f7f57ed937951650d93992ad77"
        "no rule of this name that somebody else made at another priority";
    SECURITY_GROUP_NOT_FOUND Refusal "SecurityGroupNotFound"
        "securityGroupName: nsg"
        "a security group that exists";
    NODE_PORT_TAKEN Refusal "NodePortTaken"
        "azure-disable-load-balancer-floating-ip: true"
        "node ports that no rule of somebody else's in the backend pool leads to";
    PORT_TAKEN Refusal "PortTaken"
        "spec.ports: 80"
        "ports that are free on the frontend, each once; SCTP takes a port of every protocol";
    SUBNET_NOT_FOUND Refusal "SubnetNotFound"
        "azure-load-balancer-internal-subnet: nowhere"
        "a subnet of the cluster's virtual network";
    PINNED_ADDRESS_UNUSABLE Refusal "PinnedAddressUnusable"
        "azure-load-balancer-ipv4: 10.0.0.1"
        "a free address of the subnet that Azure does not keep to itself";
    PINNED_ADDRESS_NOT_FOUND Refusal "PinnedAddressNotFound"
        "azure-load-balancer-ipv4: 20.1.2.3"
        "the address of a public IP that exists in the resource group";
    PUBLIC_IP_NOT_FOUND Refusal "PublicIpNotFound"
        "azure-pip-name: web"
        "the name of a public IP that exists in the resource group";
    PUBLIC_IP_GROUP_UNREADABLE Refusal "PublicIpGroupUnreadable"
        "azure-load-balancer-resource-group: ips"
        "a resource group that exists and whose public IPs can be read";
    PUBLIC_IP_FAMILY_MISMATCH Refusal "PublicIpFamilyMismatch"
        "azure-pip-name-ipv6: web"
        "a public IP of the family that it is to serve";
    PUBLIC_IP_SKU_MISMATCH Refusal "PublicIpSkuMismatch"
        "azure-pip-name: web"
        "a Basic public IP, where load balancers are Basic";
    PUBLIC_IP_IN_USE Refusal "PublicIpInUse"
        "azure-pip-name: web"
        "a public IP that nothing but load balancers of the cluster uses";
    PUBLIC_IP_FOREIGN Refusal "PublicIpForeign"
        "azure-pip-name: web"
        "a public IP of this cluster, or one that no cluster has made";
    DNS_LABEL_TAKEN Refusal "DnsLabelTaken"
        "azure-dns-label-name: web"
        "a label that no other Service or public IP of the region has";
    PRIVATE_LINK_BESIDE_IPV6 Refusal "PrivateLinkBesideIpv6"
        "azure-pls-create: true"
        "only on a load balancer without IPv6 frontends";
    IPV6_BESIDE_PRIVATE_LINK Refusal "Ipv6BesidePrivateLink"
        "spec.ipFamilies: IPv6"
        "only IPv4 on a load balancer that a Private Link Service stands before";
    PRIVATE_LINK_FOREIGN Refusal "PrivateLinkForeign"
        "azure-pls-create: true"
        "a frontend without another cluster's Private Link Service";
    PRIVATE_LINK_OWNED Refusal "PrivateLinkOwned"
        "azure-pls-create: true"
        "no other azure-pls-* key where the frontend is shared and another Service owns it";
    PRIVATE_LINK_GROUP_UNREADABLE Refusal "PrivateLinkGroupUnreadable"
        "azure-pls-resource-group: links"
        "a resource group that exists and whose Private Link Services can be read";
    PRIVATE_LINK_GROUP_CHANGED Refusal "PrivateLinkGroupChanged"
        "azure-pls-resource-group: links"
        "the resource group of the Private Link Service that is there";
    PRIVATE_LINK_NAME_CHANGED Refusal "PrivateLinkNameChanged"
        "azure-pls-name: web"
        "the name of the Private Link Service that is there";
    PRIVATE_LINK_NAME_TAKEN Refusal "PrivateLinkNameTaken"
        "azure-pls-name: web"
        "a name that no other Private Link Service of the resource group has";
    PRIVATE_LINK_ADDRESS_UNUSABLE Refusal "PrivateLinkAddressUnusable"
        "azure-pls-ip-configuration-ip-address: 10.0.0.1"
        "free addresses of the subnet that Azure does not keep to itself";

    ADDRESS_POOLS_BEHIND_PRIVATE_LINK Refusal "AddressPoolsBehindPrivateLink"
        "loadBalancerBackendPoolConfigurationType: nodeIP on kubernetes-internal"
        "nodeIPConfiguration while a Private Link Service stands before the load balancer";
    GATEWAY_ADDRESS_TAKEN Note "ServiceGatewayAddressTaken"
        "endpoints: 10.244.0.10 and 1 more"
        "an address that no Service of another namespace had first: it keeps the address until no \
         EndpointSlice of its namespace lists it";
    GATEWAY_INVALID_ADDRESS Note "ServiceGatewayInvalidAddress"
        "endpoints: 169.254.169.254"
        "a Pod's address: none that is unspecified, loopback, link-local, multicast or Azure's own";
    GATEWAY_FOREIGN_POD Note "ServiceGatewayForeignPod"
        "endpoints: 10.244.0.10"
        "the address of a Pod of the Service's own namespace, where targetRef names a Pod";

    POOL_KIND_SWITCHING Note "PoolKindSwitching"
        "loadBalancerBackendPoolConfigurationType: nodeIP on kubernetes"
        "patience: rules lead over a second pool until the members have changed";
    IP_TAGS_OF_SHARED_PUBLIC_IP Note "IpTagsOfSharedPublicIp"
        "azure-pip-ip-tags: RoutingPreference=Internet"
        "the IP tags that the public IP has, where other Services use it, too";
    BASIC_PUBLIC_IP_IN_USE Refusal "BasicPublicIpInUse"
        "loadBalancerSku: web"
        "a Standard public IP, or a Basic one that nothing else uses";
    BASIC_LOAD_BALANCER_CANNOT_BE_REPLACED Refusal "BasicLoadBalancerCannotBeReplaced"
        "loadBalancerSku: standard, while Basic kubernetes has NAT or outbound rules"
        "a Basic load balancer without parts of others: it is made again as Standard";
    STANDARD_CANNOT_BECOME_BASIC Refusal "StandardCannotBecomeBasic"
        "loadBalancerSku: basic, while kubernetes is Standard"
        "standard: Azure turns neither load balancers nor public IPs back";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// What else is written like a rule's name where rules are named.
    const OTHER: [&str; 1] = ["PoolMembersUnreadable"];

    #[test]
    fn every_rule_that_planning_names_is_listed() {
        let sources = [
            include_str!("../desired/balancer.rs"),
            include_str!("../desired/bridge.rs"),
            include_str!("../desired/choice.rs"),
            include_str!("../desired/frontend.rs"),
            include_str!("../desired/limit.rs"),
            include_str!("../desired/private_link.rs"),
            include_str!("../desired/private_link/beside.rs"),
            include_str!("../desired/public_ip.rs"),
            include_str!("../desired/security_group.rs"),
            include_str!("../desired/security_group/room.rs"),
            include_str!("../desired/upgrade.rs"),
            include_str!("../difftracker/tenancy.rs"),
            include_str!("../placement/per_set.rs"),
            include_str!("../placement/several.rs"),
        ];
        let listed: BTreeSet<&str> = RULES.iter().map(|r| r.name).chain(OTHER).collect();
        let mut named = 0;
        for word in sources.iter().flat_map(|text| text.split('"').skip(1).step_by(2)) {
            let capitals = word.chars().filter(char::is_ascii_uppercase).count();
            let is_name = word.starts_with(|c: char| c.is_ascii_uppercase())
                && word.chars().all(|c| c.is_ascii_alphanumeric())
                && capitals > 1
                && word != "IPv4";
            if is_name {
                named += 1;
                assert!(listed.contains(word), "{word}");
            }
        }
        assert!(named > 20, "only {named} names were found");
    }

    #[test]
    fn names_are_unique_and_in_camel_case() {
        let names: BTreeSet<&str> = RULES.iter().map(|r| r.name).collect();
        assert_eq!(names.len(), RULES.len());
        for rule in RULES {
            assert!(rule.name.starts_with(|c: char| c.is_ascii_uppercase()), "{}", rule.name);
            assert!(rule.name.chars().all(|c| c.is_ascii_alphanumeric()), "{}", rule.name);
            assert!(rule.example.contains(": "), "{}", rule.name);
        }
    }
}
