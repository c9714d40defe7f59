//! The entries.

use super::{
    Annotation, CONFIRM, CONFIRMED, DISCONNECT, Kind, PAUSE, PROTECT, RETRY, Reach, SHARE, Truth,
};
use model::Exposure;
use model::policy::BalancerSku;

const NONE: &[BalancerSku] = &[];
const STANDARD: &[BalancerSku] = &[BalancerSku::Standard];
const NODES: &[BalancerSku] = &[BalancerSku::Basic, BalancerSku::Standard];
const ALL: &[BalancerSku] = &[BalancerSku::Basic, BalancerSku::Standard, BalancerSku::Service];
const REFUSED: &str = "the Service is refused";
const IGNORED: &str = "counts as false, noted";
const FLAG: &str = "`true` in any letter case, `false`";
const EXACT: &str = "`true`, so and not otherwise, `false`";
const TRIMMED: &str = "`true` in any letter case and with spaces around it, `false`";

const fn text(key: &'static str, values: &'static str, default: &'static str) -> Annotation {
    Annotation {
        key,
        kind: Kind::Text,
        values,
        default,
        since: "0.1.0",
        effect: "",
        error: REFUSED,
        reach: Reach::Any,
        skus: NODES,
    }
}

const fn flag(key: &'static str) -> Annotation {
    let mut entry = text(key, FLAG, "`false`");
    entry.kind = Kind::Flag(Truth::AnyCase);
    entry.error = IGNORED;
    entry
}

impl Annotation {
    const fn effect(mut self, effect: &'static str) -> Self {
        self.effect = effect;
        self
    }

    const fn error(mut self, error: &'static str) -> Self {
        self.error = error;
        self
    }

    const fn exact(mut self) -> Self {
        self.kind = Kind::Flag(Truth::Exact);
        self.values = EXACT;
        self
    }

    const fn trimmed(mut self) -> Self {
        self.kind = Kind::Flag(Truth::Trimmed);
        self.values = TRIMMED;
        self
    }

    const fn on(mut self, skus: &'static [BalancerSku]) -> Self {
        self.skus = skus;
        self
    }

    const fn public(mut self) -> Self {
        self.reach = Reach::Only(Exposure::Public);
        self
    }

    const fn internal(mut self) -> Self {
        self.reach = Reach::Only(Exposure::Internal);
        self
    }
}

/// Every annotation, in the order of the reference.
pub static TABLE: &[Annotation] = &[
    // Where the Service is placed.
    flag("azure-load-balancer-internal")
        .effect("The load balancer is internal: its frontend is an address of a subnet.")
        .exact()
        .error(
            "counts as false, noted; in other letters no security rule lets in the Internet, and \
             container load balancers refuse it",
        )
        .on(ALL),
    text("azure-load-balancer-internal-subnet", "name of a subnet", "the subnet of the config")
        .effect("Subnet of the frontend; it becomes part of the names of frontend and rules.")
        .internal(),
    text(
        "azure-load-balancer-mode",
        "`__auto__` or `auto`, name of a node set",
        "the primary node set",
    )
    .effect(
        "Which load balancer, where each node set has its own: that of the primary set, the \
             one with the fewest rules, or that of the set named. `auto` means `__auto__` unless \
             a set has that name. It counts when the Service is placed: a Service that stands \
             stays where it is, and the admission policy of `ballast lint` refuses the change, \
             also one to a set called `auto` that the cloud config does not name. Ignored, and \
             noted, where there is one load balancer for all.",
    ),
    text("azure-load-balancer-configurations", "names, separated by commas", "any of them")
        .effect(
            "Which of `multipleStandardLoadBalancerConfigurations` the Service may be placed on.",
        )
        .error("refused if none of the names exists, or none is there, or beside a pinned address")
        .on(STANDARD),
    // Addresses.
    text("azure-load-balancer-ipv4", "an IPv4 address", "`spec.loadBalancerIP`, else a new one")
        .effect(
            "Address of the frontend. Public: that of a public IP that exists. Internal: an \
             address of the subnet.",
        ),
    text("azure-load-balancer-ipv6", "an IPv6 address", "`spec.loadBalancerIP`, else a new one")
        .effect("The same for IPv6."),
    text("azure-additional-public-ips", "addresses, separated by commas", "none").effect(
        "Further addresses of the Service: in its status and open in the security group. \
             Public ones, or those that `allowedAdditionalPublicIPs` of the cloud config lists; \
             not those of other Services, nodes, Pods, cluster IPs and subnets.",
    ),
    // Load-balancing rules.
    text("azure-load-balancer-tcp-idle-timeout", "minutes, 4 to 100", "4")
        .effect("Idle timeout of all rules. On Basic and container load balancers 4 to 30.")
        .on(ALL),
    flag("azure-load-balancer-enable-high-availability-ports")
        .effect(
            "One rule for all protocols and ports. Its probe is that of the first port whose \
             probe has no wrong value.",
        )
        .internal()
        .on(STANDARD),
    flag("azure-disable-load-balancer-floating-ip")
        .effect("Backends are reached on their own address and node port. Needs node ports."),
    flag("azure-load-balancer-disable-tcp-reset")
        .effect("Idle TCP connections are dropped and not reset.")
        .on(STANDARD),
    flag("port_{port}_no_lb_rule")
        .effect("Neither rule nor probe for this port, nor is it open in the security group."),
    // Health probes.
    text("azure-load-balancer-health-probe-protocol", "`tcp`, `http`, `https`", "`tcp`")
        .effect("Protocol of probes, where the port has no `appProtocol`. Basic has no Https.")
        .error("counts as `tcp`, noted"),
    text("azure-load-balancer-health-probe-interval", "seconds, from 5", "5")
        .effect("Time between two probes. Interval times count is less than 120."),
    text("azure-load-balancer-health-probe-num-of-probe", "count, from 2", "2")
        .effect("Answers in a row that change the health of a backend."),
    text("load-balancer-health-probe-num-of-probe", "count, from 2", "2").effect(
        "Another spelling of `azure-load-balancer-health-probe-num-of-probe`; that one wins.",
    ),
    text("azure-load-balancer-health-probe-request-path", "path, from `/`", "`/`")
        .effect("Path of Http and Https probes."),
    flag("port_{port}_no_probe_rule").effect("No probe for this port: every node counts as well."),
    text("port_{port}_health-probe_protocol", "`tcp`, `http`, `https`", "`appProtocol`")
        .effect(
            "Protocol of the port's probe, before everything else; an empty value counts as `tcp`.",
        )
        .error("counts as `tcp`, noted"),
    text("port_{port}_health-probe_port", "name or number of a port", "the port itself").effect(
        "What is probed: the node port of a port of the Service, by name or number, or any other \
         port number.",
    ),
    text("port_{port}_health-probe_interval", "seconds, from 5", "the value for all ports").effect(
        "Time between two probes of the port. Local Services: on the health check node port, \
             whose own number stands for all ports.",
    ),
    text("port_{port}_health-probe_num-of-probe", "count, from 2", "the value for all ports")
        .effect(
            "Answers in a row that change the health. Local Services: on the health check node \
             port, whose own number stands for all ports.",
        ),
    text("port_{port}_health-probe_request-path", "path, from `/`", "the value for all ports")
        .effect("Path of the port's Http or Https probe."),
    // Who may connect.
    text("azure-allowed-service-tags", "service tags, separated by commas", "none")
        .effect("Sources that may connect, in place of everybody."),
    text("azure-allowed-ip-ranges", "ranges, separated by commas", "none").effect(
        "Sources that may connect, in place of everybody. Not together with \
         `spec.loadBalancerSourceRanges`.",
    ),
    text("load-balancer-source-ranges", "ranges, separated by commas", "none")
        .effect("The same, under the key of Kubernetes; both lists count."),
    flag("azure-deny-all-except-load-balancer-source-ranges").effect(
        "A rule that denies everything else follows the ranges that are allowed: all ports of \
             an address that is the Service's alone; the Service's ports where others are reached \
             at the address, too, as at nodes and additional addresses.",
    ),
    flag("azure-disable-load-balancer-nsg-rule")
        .effect("The security group gets no rules for the Service."),
    flag("azure-shared-securityrule")
        .effect(
            "None: equal security rules are always shared by Services, as the Go cloud provider \
             shares them, which does not read this key any more.",
        )
        .on(NONE),
    // Public IPs.
    text("azure-pip-name", "name of a public IP", "a new one")
        .effect(
            "Public IP that exists, for IPv4, and for IPv6 where the Service has no IPv4 and \
             the next key is not set.",
        )
        .public(),
    text("azure-pip-name-ipv6", "name of a public IP", "a new one")
        .effect("The same for IPv6.")
        .public(),
    text("azure-pip-prefix-id", "resource id of a public IP prefix", "none")
        .effect(
            "The new public IP comes from this prefix; for IPv4, and for IPv6 where the Service \
             has no IPv4 and the next key is not set.",
        )
        .public()
        .on(STANDARD),
    text("azure-pip-prefix-id-ipv6", "resource id of a public IP prefix", "none")
        .effect("The same for IPv6.")
        .public()
        .on(STANDARD),
    text("azure-load-balancer-resource-group", "resource group", "that of the cluster")
        .effect("Resource group of the public IPs.")
        .public(),
    text("azure-dns-label-name", "label; empty", "left alone")
        .effect(
            "DNS label of the public IP, from the first Service on it; an empty one is taken away \
             where this cluster made the public IP.",
        )
        .public(),
    text("azure-pip-tags", "`key=value,…`", "none")
        .effect(
            "Tags of a public IP that this cluster made, from the first Service on it; those of \
             the config win. A tag that the annotation set goes when it is taken off the list, as \
             far as the ledger has recorded it; others stay, but where the config has \
             `systemTags`.",
        )
        .error("entries without exactly one `=` are left out, noted")
        .public(),
    text("azure-pip-ip-tags", "`Type=Value,…`", "none")
        .effect(
            "IP tags of the public IP, as in `RoutingPreference=Internet`. A change gives the \
             Service another address, unless the config has \
             `enableIPTagMutationForExistingPublicIP: true`.",
        )
        .error("entries without exactly one `=` are left out, noted")
        .public(),
    // Private Link Service.
    flag("azure-pls-create")
        .trimmed()
        .effect(
            "A Private Link Service stands before the IPv4 frontend. The load balancer is \
             internal, or floating IP is off.",
        )
        .on(STANDARD),
    text("azure-pls-name", "name", "`pls-` and the frontend's name")
        .effect("Its name.")
        .on(STANDARD),
    text("azure-pls-resource-group", "resource group", "that of the config")
        .effect("Its resource group.")
        .on(STANDARD),
    text("azure-pls-ip-configuration-subnet", "name of a subnet", "the frontend's subnet")
        .effect("Subnet of its addresses.")
        .on(STANDARD),
    text("azure-pls-ip-configuration-ip-address-count", "1 to 8", "1")
        .effect("How many addresses it has.")
        .on(STANDARD),
    text("azure-pls-ip-configuration-ip-address", "IPv4 addresses, separated by spaces", "none")
        .effect("Its static addresses, the first one the primary.")
        .on(STANDARD),
    text("azure-pls-fqdns", "host names, separated by spaces", "none")
        .effect("Names under which it is offered.")
        .on(STANDARD),
    flag("azure-pls-proxy-protocol")
        .trimmed()
        .effect(
            "Backends get the PROXY protocol. Local Services are then probed on their own ports.",
        )
        .on(STANDARD),
    text("azure-pls-visibility", "subscription ids, separated by spaces; `*`", "none")
        .effect("Subscriptions that see it.")
        .on(STANDARD),
    text("azure-pls-auto-approval", "subscription ids, separated by spaces", "none")
        .effect("Subscriptions whose connections are approved without asking.")
        .on(STANDARD),
    flag(DISCONNECT)
        .effect(
            "A Private Link Service to which private endpoints are connected may go, with the \
             Service, or after `azure-pls-create`. Without it such a Service stays as it is, and \
             says so.",
        )
        .on(STANDARD),
    // Holding back.
    flag(PAUSE)
        .effect(
            "Nothing of the Service is written to Azure: what it has stays, whether it is changed \
             or deleted. Its nodes and Pods are followed. Services beside it on the load balancer \
             are written as ever.",
        )
        .on(ALL),
    flag(PROTECT)
        .effect(
            "A Service that is deleted, or gets another type, keeps its finalizer and all it has \
             in Azure until the annotation is taken off.",
        )
        .on(ALL),
    flag(CONFIRM).effect(
        "A change that would take an address or a port from the Service, or move it to another \
         load balancer, waits until its owner confirms it, whatever causes it: an edit of the \
         Service, the cloud config, nodes, other Services. Nothing of the Service is written \
         meanwhile. Its deletion and another type do not wait.",
    ),
    text(CONFIRMED, "what may go, separated by commas: `20.0.0.1, TCP/443, kubernetes`", "none")
        .effect(
            "Addresses, ports and load balancers that the Service may lose, as the finding \
             `ConfirmationDue` lists them; only read with `ballast.dev/confirm`.",
        )
        .error("what is not about to go has no effect"),
    text(RETRY, "any text; `ballast retry` writes the time", "none")
        .effect(
            "A change of it, as any edit of the Service, has what Azure rejected attempted at \
             once.",
        )
        .error("every value is taken")
        .on(ALL),
    // Other namespaces.
    text(SHARE, "names of namespaces, separated by commas; `*`", "none")
        .effect(
            "Services of these namespaces may share the addresses that this Service holds first, \
             and put a Private Link Service before them. Who shares already keeps it. The cloud \
             config's `tenancy: strict` overrides it.",
        )
        .error("entries that are no names of namespaces are left out, noted"),
];
