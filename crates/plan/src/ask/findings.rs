//! Every finding about a Service and its text, which the condition and the Event repeat: first
//! those that follow from the Service alone, then those that depend on Azure and the cluster. A
//! text that depends on more than the value is where its finding is made
//! ([`FindingRule::found_with`]).

pub use super::finding_rule::FindingRule;
use model::report::Severity;

macro_rules! rules {
    ($($constant:ident $severity:ident $name:literal $example:literal $message:literal;)*) => {
        $(
            #[doc = concat!("`", $name, "`: ", $message, ".")]
            pub const $constant: FindingRule = FindingRule {
                name: $name,
                severity: Severity::$severity,
                example: $example,
                message: $message,
            };
        )*

        /// All rules.
        pub const RULES: &[FindingRule] = &[$($constant),*];
    };
}

rules! {
    INVALID_BOOLEAN Note "InvalidBoolean"
        "azure-pls-create: yes"
        r#"treated as false; use "true" or "false""#;
    UNKNOWN_ANNOTATION Note "UnknownAnnotation"
        "azure-load-balancer-colour"
        "unknown annotation; the annotation reference lists the keys that are read";
    UNKNOWN_PORT Note "UnknownPort"
        "port_81_no_lb_rule: true"
        "{value} has no effect; the number in the key must be that of a port of the Service";
    ANNOTATION_IGNORED Note "AnnotationIgnored"
        "azure-load-balancer-internal-subnet: apps"
        "{value} has no effect on this load balancer; the annotation reference says where it \
         counts";
    SHARED_RULES_ALWAYS_ON Note "SharedRulesAlwaysOn"
        "azure-shared-securityrule: true"
        "{value} has no effect; equal security rules are always shared";

    INVALID_SUBNET Refusal "InvalidSubnet"
        "azure-load-balancer-internal-subnet: vnet/apps"
        "must be the name of a subnet of the cluster's virtual network";
    INVALID_NODE_SET Refusal "InvalidNodeSet"
        "azure-load-balancer-mode: set/1"
        "must be __auto__ or the name of a scale set or availability set";
    MODE_CHANGED Refusal "ModeChanged"
        "azure-load-balancer-mode: __auto__"
        "{value} counts only when a Service is placed, and this Service is on a load balancer \
         already; name the node set to move it to, or delete the Service and create it again";
    MODE_IGNORED Note "ModeIgnored"
        "azure-load-balancer-mode: __auto__"
        "{value} has no effect; only used where each node set has its own load balancer";
    UNKNOWN_CONFIGURATION Refusal "UnknownConfiguration"
        "azure-load-balancer-configurations: lb9"
        "must name at least one entry of multipleStandardLoadBalancerConfigurations";
    UNKNOWN_CONFIGURATION_NAME Note "UnknownConfigurationName"
        "azure-load-balancer-configurations: lb9"
        "{value} names no entry of multipleStandardLoadBalancerConfigurations and is ignored; the \
         other names of the list count";
    CONFIGURATIONS_IGNORED Note "ConfigurationsIgnored"
        "azure-load-balancer-configurations: lb1"
        "{value} has no effect; only used with multipleStandardLoadBalancerConfigurations";
    CONFLICTING_PLACEMENT Refusal "ConflictingPlacement"
        "azure-load-balancer-configurations: lb1"
        "{value} conflicts with a pinned address or BYO public IP, which decides the load \
         balancer; use one of the two";

    INVALID_PINNED_ADDRESS Refusal "InvalidPinnedAddress"
        "azure-load-balancer-ipv4: fd00::1"
        "must be an IP address; in an annotation, of the family that its key names";
    PRIVATE_PINNED_ADDRESS Refusal "PrivatePinnedAddress"
        "azure-load-balancer-ipv4: 10.0.0.9"
        "must be a public unicast address, because the load balancer is public";
    UNUSED_PINNED_ADDRESS Note "UnusedPinnedAddress"
        "azure-load-balancer-ipv6: fd00::1"
        "{value} has no effect, because the Service does not have this family; use an address of a \
         family in spec.ipFamilies";
    INVALID_ADDITIONAL_ADDRESS Refusal "InvalidAdditionalAddress"
        "azure-additional-public-ips: host"
        "must be IP addresses, separated by commas";
    FORBIDDEN_ADDITIONAL_ADDRESS Refusal "ForbiddenAdditionalAddress"
        "azure-additional-public-ips: 169.254.169.254"
        "must be a public address, or one that allowedAdditionalPublicIPs lists, and never an \
         unspecified, loopback, link-local, multicast or reserved one, nor 168.63.129.16";
    INVALID_SHARING_NAMESPACE Note "InvalidSharingNamespace"
        "ballast.dev/share-with-namespaces: Team A"
        "entry {value} is left out; must be names of namespaces, separated by commas, or *";
    RESOURCE_GROUP_NOT_ALLOWED Refusal "ResourceGroupNotAllowed"
        "azure-load-balancer-resource-group: ips"
        "must be the resource group of the cloud config, or one that allowedResourceGroups lists";
    INVALID_PUBLIC_IP_NAME Refusal "InvalidPublicIpName"
        "azure-pip-name: rg/web"
        "must be the name of a public IP";
    INVALID_PUBLIC_IP_PREFIX Refusal "InvalidPublicIpPrefix"
        "azure-pip-prefix-id: prefix"
        "must be a resource ID such as \
         /subscriptions/…/resourceGroups/…/providers/Microsoft.Network/publicIPPrefixes/…";
    INVALID_RESOURCE_GROUP Refusal "InvalidResourceGroup"
        "azure-load-balancer-resource-group: a/b"
        "must be the name of a resource group";
    INVALID_DNS_LABEL Refusal "InvalidDnsLabel"
        "azure-dns-label-name: My_Web"
        "must be 3 to 63 lower-case letters, digits and dashes, beginning with a letter and ending \
         with a letter or digit";
    MALFORMED_TAG Note "MalformedTag"
        "azure-pip-tags: team"
        "{value} is ignored; tags must be written as KEY=VALUE, separated by commas";
    INVALID_TAG Refusal "InvalidTag"
        "azure-pip-tags: a/b"
        "tag {value} is not possible in Azure; keys must have up to 512 characters without \
         <>%&\\?/, values up to 256";
    TOO_MANY_TAGS Refusal "TooManyTags"
        "azure-pip-tags: 51 tags"
        "{value} do not fit on a public IP; a resource has at most 50";
    RESERVED_TAG Note "ReservedTag"
        "azure-pip-tags: k8s-azure-service"
        "tag {value} is ignored; keys must not be service, kubernetes-cluster-name or \
         kubernetes-dns-label-service, nor begin with k8s-azure-, aks-managed- or \
         ballast-cluster-uid";
    OVERRIDDEN_TAG Note "OverriddenTag"
        "azure-pip-tags: owner"
        "tag {value} is ignored, because the tags of the cloud config have another value for it; \
         use another key";

    INVALID_IDLE_TIMEOUT Refusal "InvalidIdleTimeout"
        "azure-load-balancer-tcp-idle-timeout: 3"
        "must be a whole number of minutes from 4 to 100";
    UNSUPPORTED_SCTP Refusal "UnsupportedSctp"
        "spec.ports: SCTP/5000"
        "SCTP requires an internal Standard load balancer";
    NODE_PORTS_REQUIRED Refusal "NodePortsRequired"
        "spec.allocateLoadBalancerNodePorts: false"
        "must be true, because backends without floating IP are reached on node ports";

    INVALID_PROBE_PROTOCOL Note "InvalidProbeProtocol"
        "port_80_health-probe_protocol: grpc"
        "treated as tcp; use tcp, http or https";
    INVALID_PROBE_PORT Refusal "InvalidProbePort"
        "port_80_health-probe_port: admin"
        "must be the name or number of a port of the Service, or a number from 1 to 65535";
    INVALID_PROBE_INTERVAL Refusal "InvalidProbeInterval"
        "azure-load-balancer-health-probe-interval: 3"
        "must be a whole number of seconds, at least 5";
    INVALID_PROBE_COUNT Refusal "InvalidProbeCount"
        "azure-load-balancer-health-probe-num-of-probe: 1"
        "must be a whole number, at least 2";
    PROBE_TOO_SLOW Refusal "ProbeTooSlow"
        "azure-load-balancer-health-probe-interval: 60 s x 2"
        "interval times count must be less than 120 seconds";
    PROBE_SETTING_IGNORED Note "ProbeSettingIgnored"
        "port_443_health-probe_protocol: tcp"
        "{value} has no effect on this Service; Services with externalTrafficPolicy Local are \
         probed on their health check node port";
    INVALID_REQUEST_PATH Refusal "InvalidRequestPath"
        "azure-load-balancer-health-probe-request-path: ready"
        "must be a path that begins with /";

    INVALID_SERVICE_TAG Refusal "InvalidServiceTag"
        "azure-allowed-service-tags: 10.0.0.0/8"
        "must be service tags, separated by commas; ranges belong in azure-allowed-ip-ranges";
    EMPTY_SERVICE_TAGS Note "EmptyServiceTags"
        "azure-allowed-service-tags: Storage,"
        "empty entries are ignored; use service tags, separated by commas";
    INVALID_SOURCE_RANGE Refusal "InvalidSourceRange"
        "azure-allowed-ip-ranges: 203.0.113.0/99"
        "must be an IP range such as 203.0.113.0/24, with host bits zero";
    CONFLICTING_SOURCE_RANGES Refusal "ConflictingSourceRanges"
        "azure-allowed-ip-ranges: 203.0.113.0/24"
        "{value} conflicts with spec.loadBalancerSourceRanges; use one of the two";
    SOURCE_RANGES_LIMIT_TAGS Note "SourceRangesLimitTags"
        "azure-allowed-service-tags: AzureCloud"
        "{value} is limited by the source ranges, because kube-proxy drops all other sources; the \
         source ranges must contain the addresses of the tags, too";
    SOURCE_RANGES_OF_OTHER_FAMILY Note "SourceRangesOfOtherFamily"
        "azure-allowed-ip-ranges: 2001:db8::/32"
        "{value} opens nothing, because the Service does not have this family; use ranges of a \
         family in spec.ipFamilies";
    DENY_ALL_WITHOUT_RANGES Note "DenyAllWithoutRanges"
        "azure-deny-all-except-load-balancer-source-ranges: true"
        "{value} has no effect; only used with source ranges";

    PRIVATE_LINK_UNREACHABLE Refusal "PrivateLinkUnreachable"
        "azure-pls-create: true"
        "{value} requires an internal load balancer, or a public one with floating IP disabled";
    PRIVATE_LINK_NEEDS_IPV4 Refusal "PrivateLinkNeedsIpv4"
        "azure-pls-create: true"
        "{value} requires a Service of IPv4 alone";
    PRIVATE_LINK_NEEDS_STANDARD Refusal "PrivateLinkNeedsStandard"
        "azure-pls-create: true"
        "{value} requires a Standard load balancer";
    PRIVATE_LINK_NEEDS_NIC_POOLS Refusal "PrivateLinkNeedsNicPools"
        "azure-pls-create: true"
        "{value} requires pools of network interfaces (nodeIPConfiguration)";
    PRIVATE_LINK_NOT_CREATED Note "PrivateLinkNotCreated"
        "azure-pls-name: web"
        r#"{value} has no effect; only used with azure-pls-create: "true""#;
    INVALID_PRIVATE_LINK_NAME Refusal "InvalidPrivateLinkName"
        "azure-pls-name: a/b"
        "must be 1 to 80 letters, digits, dots, dashes and underscores";
    INVALID_PRIVATE_LINK_COUNT Refusal "InvalidPrivateLinkCount"
        "azure-pls-ip-configuration-ip-address-count: 9"
        "must be a whole number from 1 to 8, and at least the number of static addresses";
    INVALID_PRIVATE_LINK_ADDRESS Refusal "InvalidPrivateLinkAddress"
        "azure-pls-ip-configuration-ip-address: fd00::1"
        "must be IPv4 addresses, each once, separated by spaces";
    INVALID_PRIVATE_LINK_FQDN Refusal "InvalidPrivateLinkFqdn"
        "azure-pls-fqdns: a.example,b.example"
        "must be host names, separated by spaces";
    INVALID_SUBSCRIPTION Refusal "InvalidSubscription"
        "azure-pls-visibility: a,b"
        "must be subscription IDs separated by spaces, or *";
    APPROVAL_INVISIBLE Note "AutoApprovalNotVisible"
        "azure-pls-auto-approval: 11111111-2222-3333-4444-555555555555"
        "{value} cannot be approved, because azure-pls-visibility does not list it; only \
         subscriptions that see the Private Link Service connect to it";
    TOO_MANY_SUBSCRIPTIONS Refusal "TooManySubscriptions"
        "azure-pls-visibility: 101 subscriptions"
        "{value} are too many; at most 100 are possible";

    UNSUPPORTED_INTERNAL Refusal "UnsupportedInternalLoadBalancer"
        "azure-load-balancer-internal: true"
        "{value} is not supported, because container load balancers are public; use false";
    UNSUPPORTED_AFFINITY Refusal "UnsupportedSessionAffinity"
        "spec.sessionAffinity: ClientIP"
        "{value} is not supported on container load balancers; use None";
    UNSUPPORTED_ADDRESS Refusal "UnsupportedLoadBalancerIP"
        "spec.loadBalancerIP: 20.1.2.3"
        "{value} is not supported, because container load balancers choose their address; remove \
         it";
    UNSUPPORTED_DUAL_STACK Refusal "UnsupportedDualStack"
        "spec.ipFamilies: IPv4,IPv6"
        "must be one family on container load balancers";
    UNSUPPORTED_PROTOCOL Refusal "UnsupportedProtocol"
        "spec.ports: SCTP/5000"
        "must be TCP or UDP on container load balancers";
    BACKEND_COLLISION Refusal "UnsupportedBackendPortCollision"
        "spec.ports: TCP/8080"
        "{value} is the target of several ports; each must have its own on container load \
         balancers";
    INVALID_FRONTEND_PORT Refusal "InvalidFrontendPort"
        "spec.ports: TCP/65535"
        "must be a port from 1 to 65534 on container load balancers";
    INVALID_BACKEND_PORT Refusal "InvalidBackendPort"
        "spec.ports: TCP/0"
        "must have a target port from 1 to 65535";
    UNENFORCED_SOURCES Refusal "UnenforcedSources"
        "azure-allowed-ip-ranges: 203.0.113.0/24"
        "{value} cannot be enforced on container load balancers, whose traffic goes to Pods past \
         kube-proxy and the cluster's security group; use a NetworkPolicy";
    IGNORED_BY_CONTAINER Note "IgnoredByContainerLoadBalancer"
        "azure-dns-label-name: web"
        "{value} has no effect on container load balancers";

    UNKNOWN_NODE_SET Refusal "UnknownNodeSet"
        "azure-load-balancer-mode: set9"
        "must be __auto__ or a scale set or availability set with nodes";
    LOAD_BALANCERS_FULL Refusal "LoadBalancersFull"
        "spec.ports"
        "no load balancer on which the Service may be placed has room for its rules; remove rules, \
         or allow the Service more load balancers";
    NO_ELIGIBLE_LOAD_BALANCER Refusal "NoEligibleLoadBalancer"
        "azure-load-balancer-configurations: lb2"
        "no load balancer configuration takes the Service; its labels and namespace must match the \
         selectors of one";
    PINNED_NOT_ELIGIBLE Refusal "PinnedLoadBalancerNotEligible"
        "azure-load-balancer-ipv4: 20.1.2.3"
        "{value} is on a load balancer that the Service must not be on; use an address that is \
         free";
    LOAD_BALANCER_RULE_LIMIT Refusal "LoadBalancerRuleLimit"
        "spec.ports"
        "the load balancer has no room for the rules; a load balancer has at most 1,500, on Basic \
         250";
    LOAD_BALANCER_FRONTEND_LIMIT Refusal "LoadBalancerFrontendLimit"
        "spec.type"
        "the load balancer has no room for the frontends; a load balancer has at most 600, on \
         Basic 200";
    NETWORK_INTERFACE_RULE_LIMIT Refusal "NetworkInterfaceRuleLimit"
        "spec.ports"
        "the nodes' network interfaces have no room for the rules; a network interface has at most \
         300, pools of addresses have no such limit";
    LOAD_BALANCER_LIMIT Refusal "LoadBalancerLimit"
        "spec.type"
        "no load balancer can be added; a subscription has at most 1,000";
    BACKEND_RESOURCE_LIMIT Note "BackendResourceLimit"
        "nodes"
        "some nodes get no traffic; a load balancer whose pools contain network interfaces has at \
         most 150 scale sets, availability sets and single VMs behind it";
    PRIVATE_LINK_LIMIT Refusal "PrivateLinkLimit"
        "azure-pls-create"
        "no Private Link Service can be added; a load balancer has at most 8, a subscription 800";
    POOL_ADDRESS_LIMIT Note "PoolAddressLimit"
        "nodes"
        "some nodes get no traffic; a pool has at most 1,000 addresses or network interfaces, on \
         Basic 300";
    SECURITY_RULE_LIMIT Refusal "SecurityRuleLimit"
        "spec.ports"
        "the security group has no room for a rule; it has at most 1,000 rules, 4,000 source and \
         4,000 destination prefixes";
    SECURITY_RULE_NAME_TAKEN Refusal "SecurityRuleNameTaken"
        "spec.ports: k8s-azure-lb_allow_IPv4_d39272f7f57ed937951650d93992ad77"
        "security rule {value} exists with another priority and is not managed by this cluster; \
         rename or delete it";
    SECURITY_GROUP_NOT_FOUND Refusal "SecurityGroupNotFound"
        "securityGroupName: nsg"
        "security group {value} does not exist; use the name of one that does";
    NODE_PORT_TAKEN Refusal "NodePortTaken"
        "spec.ports: 30080"
        "node port {value} is used by a rule of another owner in the backend pool; use another one";
    PORT_TAKEN Refusal "PortTaken"
        "spec.ports: 80"
        "port {value} is in use on the frontend; a port can be used once for TCP and once for UDP, \
         or once for SCTP alone";
    SUBNET_NOT_FOUND Refusal "SubnetNotFound"
        "azure-load-balancer-internal-subnet: nowhere"
        "subnet {value} does not exist; use a subnet of the cluster's virtual network";
    PINNED_ADDRESS_UNUSABLE Refusal "PinnedAddressUnusable"
        "azure-load-balancer-ipv4: 10.0.0.1"
        "must be a free address of the subnet that is not reserved by Azure";
    ADDITIONAL_ADDRESS_TAKEN Refusal "AdditionalAddressTaken"
        "azure-additional-public-ips: 20.1.2.3"
        "address {value} is in use; use one that no other Service, node or Pod has, and that is \
         neither a cluster IP nor in a subnet";
    ADDRESS_NOT_SHARED Refusal "AddressNotShared"
        "azure-load-balancer-ipv4: 20.1.2.3"
        "{value} is held by a Service of another namespace; use an address of the Service's own \
         namespace, or have that Service name this namespace in ballast.dev/share-with-namespaces";
    PRIVATE_LINK_NOT_SHARED Refusal "PrivateLinkNotShared"
        "azure-pls-create: true"
        "the frontend is held by a Service of another namespace; use a frontend of the Service's \
         own, or have that Service name this namespace in ballast.dev/share-with-namespaces";
    PUBLIC_IP_NOT_ALLOWED Refusal "PublicIpNotAllowed"
        "azure-pip-name: web"
        "must be a public IP that allowedBYOPublicIPs lists, or one of a Service of the same \
         namespace";
    POOL_NAME_TAKEN Refusal "PoolNameTaken"
        "metadata.name: a/b-c"
        "the backend pool of {value} would have the name of another; rename the Service";
    PUBLIC_IP_OPTIONS_IGNORED Note "PublicIpOptionsIgnored"
        "azure-dns-label-name: web"
        "{value} is ignored on this public IP; only the first Service on a public IP sets its DNS \
         label and tags; on a BYO public IP that Service sets only the label, and never removes \
         one";
    PINNED_ADDRESS_NOT_FOUND Refusal "PinnedAddressNotFound"
        "azure-load-balancer-ipv4: 20.1.2.3"
        "must be the address of a public IP that exists in the resource group";
    PUBLIC_IP_NOT_FOUND Refusal "PublicIpNotFound"
        "azure-pip-name: web"
        "must be the name of a public IP that exists in the resource group";
    PUBLIC_IP_GROUP_UNREADABLE Refusal "PublicIpGroupUnreadable"
        "azure-load-balancer-resource-group: ips"
        "public IPs of resource group {value} cannot be read; use a resource group that exists and \
         that the controller's identity can read";
    PUBLIC_IP_FAMILY_MISMATCH Refusal "PublicIpFamilyMismatch"
        "azure-pip-name-ipv6: web"
        "must be a public IP of the family that it is to serve";
    PUBLIC_IP_SKU_MISMATCH Refusal "PublicIpSkuMismatch"
        "azure-pip-name: web"
        "must be a Basic public IP, because the load balancer is Basic";
    PUBLIC_IP_IN_USE Refusal "PublicIpInUse"
        "azure-pip-name: web"
        "must be a public IP that only load balancers of the cluster use";
    PUBLIC_IP_FOREIGN Refusal "PublicIpForeign"
        "azure-pip-name: web"
        "must be a public IP of this cluster, or one that no cluster has made";
    DNS_LABEL_TAKEN Refusal "DnsLabelTaken"
        "azure-dns-label-name: web"
        "label {value} is in use; use one that no other Service or public IP of the region has";
    PRIVATE_LINK_BESIDE_IPV6 Refusal "PrivateLinkBesideIpv6"
        "azure-pls-create: true"
        "{value} requires a load balancer without IPv6 frontends";
    IPV6_BESIDE_PRIVATE_LINK Refusal "Ipv6BesidePrivateLink"
        "spec.ipFamilies: IPv6"
        "{value} is not possible on a load balancer with a Private Link Service; use IPv4";
    PRIVATE_LINK_FOREIGN Refusal "PrivateLinkForeign"
        "azure-pls-create"
        "the frontend has a Private Link Service of another cluster; use a frontend without one";
    PRIVATE_LINK_OWNED Refusal "PrivateLinkOwned"
        "azure-pls-create"
        "another Service owns the Private Link Service of the shared frontend; of the azure-pls-* \
         annotations keep only azure-pls-create";
    PRIVATE_LINK_GROUP_UNREADABLE Refusal "PrivateLinkGroupUnreadable"
        "azure-pls-resource-group: links"
        "Private Link Services of resource group {value} cannot be read; use a resource group that \
         exists and that the controller's identity can read";
    PRIVATE_LINK_GROUP_CHANGED Refusal "PrivateLinkGroupChanged"
        "azure-pls-resource-group: links"
        "must be the resource group of the existing Private Link Service";
    PRIVATE_LINK_NAME_CHANGED Refusal "PrivateLinkNameChanged"
        "azure-pls-name: web"
        "must be the name of the existing Private Link Service";
    PRIVATE_LINK_NAME_TAKEN Refusal "PrivateLinkNameTaken"
        "azure-pls-name: web"
        "must be a name that no other Private Link Service of the resource group has";
    PRIVATE_LINK_CONNECTED Refusal "PrivateLinkConnected"
        "ballast.dev/disconnect-private-endpoints"
        "must be true before a Private Link Service is deleted to which private endpoints are \
         connected";
    PAUSED Hold "Paused"
        "ballast.dev/pause"
        "nothing of the Service is written to Azure while its owner pauses it, but its backends \
         still follow nodes and Pods; what it has stays";
    DELETION_PROTECTED Hold "DeletionProtected"
        "ballast.dev/deletion-protection"
        "the Service keeps its finalizer and all it has in Azure until the annotation is taken off";
    CONFIRMATION_DUE Hold "ConfirmationDue"
        "ballast.dev/confirm: 20.0.0.1, TCP/443"
        "what is planned would interrupt the Service; it keeps what it has until \
         ballast.dev/confirmed lists {value}";
    CONFIRMATION_LEFT Note "ConfirmationLeft"
        "ballast.dev/confirmed: TCP/443"
        "{value} is confirmed, but no planned change removes it; take it off the list, or a later \
         change may remove it without asking";
    PRIVATE_LINK_ADDRESS_UNUSABLE Refusal "PrivateLinkAddressUnusable"
        "azure-pls-ip-configuration-ip-address: 10.0.0.1"
        "must be free addresses of the subnet that are not reserved by Azure";

    ADDRESS_POOLS_BEHIND_PRIVATE_LINK Refusal "AddressPoolsBehindPrivateLink"
        "loadBalancerBackendPoolConfigurationType: nodeIP"
        "{value} is not possible on a load balancer with a Private Link Service; use \
         nodeIPConfiguration";
    GATEWAY_ADDRESS_TAKEN Note "ServiceGatewayAddressTaken"
        "endpoints: 10.244.0.10"
        "{value} gets no traffic, because a Service of another namespace had it first; an address \
         is free once no EndpointSlice of that namespace lists it";
    GATEWAY_INVALID_ADDRESS Note "ServiceGatewayInvalidAddress"
        "endpoints: 169.254.169.254"
        "{value} gets no traffic; must not be unspecified, loopback, link-local, multicast or \
         Azure's own";
    GATEWAY_FOREIGN_POD Note "ServiceGatewayForeignPod"
        "endpoints: 10.244.0.10"
        "{value} gets no traffic; targetRef must name a Pod of the Service's own namespace";
    GATEWAY_NO_NODE Note "ServiceGatewayNoNode"
        "endpoints: 10.244.0.10"
        "{value} gets no traffic; nodeName must say which node the Pod is on";
    GATEWAY_UNKNOWN_NODE Note "ServiceGatewayUnknownNode"
        "endpoints: 10.244.0.10"
        "{value} is ready and gets no traffic, because its node is not in the cluster or has no \
         InternalIP of the address's family";
    GATEWAY_TORN_SLICE Note "ServiceGatewayTornSlice"
        "endpoints: web-x7k2p"
        "EndpointSlice {value} counts for no Service; its label kubernetes.io/service-name must \
         name the Service that its owner reference does";
    ENDPOINTS_OUTSIDE_CLUSTER Refusal "EndpointsOutsideCluster"
        "endpoints"
        "none is on a node of the cluster, and container load balancers lead to no others; the \
         Service keeps its load balancer over nodes until one is";
    HAS_BOTH_ADDRESSES Note "HasBothAddresses"
        "layoutMigration"
        "the Service moves to the other kind of load balancers: the former address leaves its \
         status when keepBoth is over; let clients use the new address";

    TARGET_PORT_UNKNOWN Note "TargetPortUnknown"
        "spec.ports: targetPort http"
        "no Pod of the Service has a container port of that name; the port gets no traffic until \
         one has";
    TARGET_PORTS_DIFFER Note "TargetPortsDiffer"
        "spec.ports: http is 8080, 9090"
        "ready Pods differ in a target port: {value}; a rule has one backend port, so the rule \
         stays as it is until the Pods agree";
    TARGET_PORT_SHARED Note "TargetPortShared"
        "spec.ports: http is 8080"
        "a port whose target port is a name gets no rule, because another port leads to the same \
         number: {value}; on container load balancers each must lead to a number of its own";
    NO_BACKENDS Note "NoBackends"
        "nodes: kubernetes"
        "load balancer {value} has no node behind it, or only nodes that are leaving; connections \
         fail until one joins";
    NO_WAY_OUT Note "NoWayOut"
        "disableOutboundSNAT: true"
        "with {value}, nodes have no way out to the Internet that Ballast can see; add a NAT \
         gateway to their subnet, an outbound rule or a route";
    POOL_MEMBERS_UNREADABLE Note "PoolMembersUnreadable"
        "network interfaces: HTTP 403 AuthorizationFailed"
        "cannot be read, so no node joins pools by them ({value}); grant the right to read them";
    POOL_KIND_SWITCHING Note "PoolKindSwitching"
        "loadBalancerBackendPoolConfigurationType: nodeIP"
        "during the switch to {value}, rules use a temporary pool; they return to the cluster's \
         pool when that pool is complete";
    IP_TAGS_OF_SHARED_PUBLIC_IP Note "IpTagsOfSharedPublicIp"
        "azure-pip-ip-tags: RoutingPreference=Internet"
        "{value} is not applied, because other Services use the public IP, too, or the Service \
         itself names the public IP; use the IP tags that the public IP has";
    BASIC_PUBLIC_IP_IN_USE Refusal "BasicPublicIpInUse"
        "loadBalancerSku: web"
        "Basic public IP {value} cannot be upgraded while something else uses it; use a Standard \
         one";
    BASIC_LOAD_BALANCER_CANNOT_BE_REPLACED Refusal "BasicLoadBalancerCannotBeReplaced"
        "loadBalancerSku"
        "a Basic load balancer cannot be replaced by a Standard one while it has another client's \
         rules, frontends or pools, or a Service that would lose its address; remove or correct \
         them";
    STANDARD_CANNOT_BECOME_BASIC Refusal "StandardCannotBecomeBasic"
        "loadBalancerSku: basic"
        "{value} is not possible, because Azure cannot turn Standard load balancers and public IPs \
         into Basic; use standard";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_rule_that_planning_names_is_listed() {
        let sources = [
            include_str!("../claim/additional.rs"),
            include_str!("../claim/consent.rs"),
            include_str!("../claim/pool.rs"),
            include_str!("../shape/balancer.rs"),
            include_str!("../shape/bridge.rs"),
            include_str!("../claim/choice.rs"),
            include_str!("../claim/address.rs"),
            include_str!("../claim/limit.rs"),
            include_str!("../claim/private_link.rs"),
            include_str!("../claim/private_link/beside.rs"),
            include_str!("../shape/public_ip.rs"),
            include_str!("../claim/security_group.rs"),
            include_str!("../claim/security_group/room.rs"),
            include_str!("../claim/upgrade.rs"),
            include_str!("../pods/table/tenancy.rs"),
            include_str!("../claim/placement/per_set.rs"),
            include_str!("../claim/placement/several.rs"),
            include_str!("../migration/join.rs"),
        ];
        let listed: BTreeSet<&str> = RULES.iter().map(|r| r.name).collect();
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
        }
    }
}
