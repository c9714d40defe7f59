//! What a Service on load balancers whose backends are nodes must be.

use super::cel::{
    GROUP, NAME, NODE_PORT, before, is_group, is_range, is_set, is_set_of_port, is_whole, list,
    matches, present, quote, text, words,
};
use super::{Validation, probes};
use model::policy::{BalancerSku, Layout, PoolKind, Preconfigured};
use model::{Group, Policy};
use plan::ask::AUTO;
use plan::ask::annotation::{CONFIGURATIONS, INTERNAL, PREFIX};
use plan::ask::findings::{
    CONFLICTING_PLACEMENT, CONFLICTING_SOURCE_RANGES, FORBIDDEN_ADDITIONAL_ADDRESS,
    INVALID_ADDITIONAL_ADDRESS, INVALID_DNS_LABEL, INVALID_NODE_SET, INVALID_PINNED_ADDRESS,
    INVALID_PRIVATE_LINK_ADDRESS, INVALID_PRIVATE_LINK_COUNT, INVALID_PRIVATE_LINK_FQDN,
    INVALID_PRIVATE_LINK_NAME, INVALID_PUBLIC_IP_NAME, INVALID_PUBLIC_IP_PREFIX,
    INVALID_RESOURCE_GROUP, INVALID_SERVICE_TAG, INVALID_SOURCE_RANGE, INVALID_SUBNET,
    INVALID_SUBSCRIPTION, INVALID_TAG, MODE_CHANGED, NODE_PORTS_REQUIRED, PRIVATE_LINK_NEEDS_IPV4,
    PRIVATE_LINK_NEEDS_NIC_POOLS, PRIVATE_LINK_NEEDS_STANDARD, PRIVATE_LINK_UNREACHABLE,
    PRIVATE_PINNED_ADDRESS, RESOURCE_GROUP_NOT_ALLOWED, UNKNOWN_CONFIGURATION, UNSUPPORTED_SCTP,
};

/// Addresses that no load balancer anywhere has, beside IPv4 addresses written as `::ffff:0:0/96`,
/// which the API server takes for no addresses.
const SPECIAL: &str = "['0.0.0.0/8', '127.0.0.0/8', '168.63.129.16/32', '169.254.0.0/16', \
     '224.0.0.0/4', '240.0.0.0/4', '::/96', '64:ff9b::/96', 'fe80::/10', 'ff00::/8']";
/// Ranges for private networks.
const PRIVATE: &str =
    "['10.0.0.0/8', '100.64.0.0/10', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7']";
/// Keys of tags that no Service sets, in lower case.
const RESERVED_TAG: &str = "^((k8s-azure|aks-managed)-.*|ballast-cluster-uid.*|service|\
                            kubernetes-cluster-name|kubernetes-dns-label-service)$";
/// Addresses that no public IP has.
const NOT_PUBLIC: &str = "['0.0.0.0/32', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', \
     '168.63.129.16/32', '169.254.0.0/16', '172.16.0.0/12', '192.168.0.0/16', '224.0.0.0/4', \
     '255.255.255.255/32', '::/128', '::1/128', 'fc00::/7', 'fe80::/10', 'ff00::/8']";
const LABEL: &str = "^[a-z][a-z0-9-]{1,61}[a-z0-9]$";
/// Addresses of a Private Link Service.
const MOST_LINK_ADDRESSES: u64 = 8;
const PINNED: [(&str, &str); 2] =
    [("IPv4", "azure-load-balancer-ipv4"), ("IPv6", "azure-load-balancer-ipv6")];

pub fn validations(policy: &Policy) -> Vec<Validation> {
    let mut all = placement(policy);
    all.extend(addresses(policy));
    all.extend(public_ips(policy));
    all.extend(rules(policy));
    all.extend(probes::validations(policy));
    all.extend(access());
    all.extend(private_links(policy));
    all
}

fn placement(policy: &Policy) -> Vec<Validation> {
    let subnet = text("azure-load-balancer-internal-subnet");
    let link_subnet = text("azure-pls-ip-configuration-subnet");
    let mut all = vec![Validation::new(
        &INVALID_SUBNET,
        format!(
            "(!variables.internal || {}) && (!variables.link || {})",
            matches(&subnet, NAME),
            matches(&link_subnet, NAME)
        ),
    )];
    match &policy.layout {
        Layout::PerNodeSet { without_own } => {
            let mode = matches(&text("azure-load-balancer-mode"), NAME);
            all.push(Validation::new(&INVALID_NODE_SET, mode));
            let mut sets = without_own.iter().chain([&policy.primary_set]);
            let words = match sets.any(|set| set.eq_ignore_ascii_case(AUTO)) {
                true => "['__auto__']",
                false => "['__auto__', 'auto']",
            };
            all.push(Validation::new(&MODE_CHANGED, is_mode_possible(words)));
        }
        Layout::Several(known) => {
            let names: Vec<String> =
                known.iter().map(|config| quote(&config.name.to_lowercase())).collect();
            let known = format!("e.lowerAscii() in [{}]", names.join(", "));
            let (lists, chosen) = (lists(), chosen());
            all.push(Validation::new(
                &UNKNOWN_CONFIGURATION,
                format!("size({lists}) == 0 || {chosen}.exists(e, {known})"),
            ));
            all.push(Validation::new(
                &CONFLICTING_PLACEMENT,
                format!("!({}) || !{chosen}.exists(e, {known})", fixed()),
            ));
        }
        Layout::Single | Layout::PerService => {}
    }
    all
}

/// Whether the mode is unchanged, or the Service is placed anew: it is on no load balancer yet, or
/// turns public or internal. `words` are the spellings of `__auto__`; `auto` is one of them unless
/// the cloud config has a node set of that name.
fn is_mode_possible(words: &str) -> String {
    let mode = format!("{}.lowerAscii()", text("azure-load-balancer-mode"));
    let stood = "has(oldObject.status) && has(oldObject.status.loadBalancer) && \
                 has(oldObject.status.loadBalancer.ingress)";
    format!(
        "request.operation == 'CREATE' || !({mode} in {words}) || {} in ['__auto__', 'auto'] || \
         ({}) != variables.internal || !({stood})",
        before(&mode),
        before(&is_set(INTERNAL))
    )
}

/// The lists of configurations that a Service has; the key's letter case does not matter.
fn lists() -> String {
    let key = format!("{PREFIX}{CONFIGURATIONS}");
    format!(
        "('{key}' in variables.a ? [variables.a['{key}']] : variables.a.filter(k, k.lowerAscii() \
         == '{key}').map(k, variables.a[k]))"
    )
}

/// The configurations that a Service names.
fn chosen() -> String {
    let lists = lists();
    format!("(size({lists}) == 0 ? [] : {lists}[0].split(',').map(e, e.trim()))")
}

/// Whether an address or a public IP was named, which decides the load balancer.
fn fixed() -> String {
    let annotated: Vec<String> = PINNED
        .iter()
        .map(|(family, key)| format!("({family:?} in variables.families && {} != '')", text(key)))
        .collect();
    let of_field = format!("(isIP(variables.pinned) && {})", of_field_family());
    format!(
        "(!variables.internal && (variables.name4 != '' || variables.name6 != '')) || {} || \
         {of_field}",
        annotated.join(" || ")
    )
}

/// True where the field's family is one of the Service's and its annotation is empty.
fn of_field_family() -> String {
    let [(_, four), (_, six)] = PINNED;
    format!(
        "(ip(variables.pinned).family() == 4 ? 'IPv4' in variables.families && {} == '' : 'IPv6' \
         in variables.families && {} == '')",
        text(four),
        text(six)
    )
}

fn addresses(policy: &Policy) -> Vec<Validation> {
    let additional = list("azure-additional-public-ips");
    let (mut valid, mut public) = (Vec::new(), Vec::new());
    for (family, key) in PINNED {
        let (text, number) = (text(key), &family[3..]);
        let unused = format!("!({family:?} in variables.families) || {text} == ''");
        valid.push(format!("({unused} || (isIP({text}) && ip({text}).family() == {number}))"));
        public.push(format!("({unused} || !isIP({text}) || {})", is_public(&text)));
    }
    let annotated: Vec<String> = PINNED
        .iter()
        .map(|(family, key)| {
            format!("(!({family:?} in variables.families) || {} != '')", text(key))
        })
        .collect();
    let unread = format!("variables.pinned == '' || ({})", annotated.join(" && "));
    valid.push(format!("({unread} || isIP(variables.pinned))"));
    public.push(format!(
        "({unread} || !isIP(variables.pinned) || !{} || {})",
        of_field_family(),
        is_public("variables.pinned")
    ));
    vec![
        Validation::new(&INVALID_PINNED_ADDRESS, valid.join(" && ")),
        Validation::new(
            &PRIVATE_PINNED_ADDRESS,
            format!("variables.internal || ({})", public.join(" && ")),
        ),
        Validation::new(&INVALID_ADDITIONAL_ADDRESS, format!("{additional}.all(e, isIP(e))")),
        Validation::new(
            &FORBIDDEN_ADDITIONAL_ADDRESS,
            format!("{additional}.all(e, !isIP(e) || {})", may_be_additional(policy)),
        ),
    ]
}

/// Whether `e` may be an additional address, as far as it tells by itself.
fn may_be_additional(policy: &Policy) -> String {
    let within = |ranges: &str| format!("{ranges}.exists(c, cidr(c).containsIP(e))");
    let allowed = match &policy.additional_addresses {
        Some(ranges) => {
            let ranges: Vec<String> = ranges.iter().map(|r| format!("'{r}'")).collect();
            within(&format!("[{}]", ranges.join(", ")))
        }
        None => format!("!{}", within(PRIVATE)),
    };
    format!("(!{} && {allowed})", within(SPECIAL))
}

/// Whether the cloud config allows the resource groups that a Service names.
fn are_groups_allowed(policy: &Policy, listed: &[Group]) -> String {
    let is_allowed = |key: &str, own: &Group| {
        let name = text(key);
        let all = listed.iter().chain([own]).map(|group| quote(&group.as_str().to_lowercase()));
        let all: Vec<String> = all.chain([quote("")]).collect();
        let lower = format!("{name}.lowerAscii() in [{}]", all.join(", "));
        format!("(!{} || {lower})", is_group(&name))
    };
    let link = is_allowed("azure-pls-resource-group", &policy.private_link_group);
    let ips = is_allowed("azure-load-balancer-resource-group", &policy.group);
    format!("(variables.internal || {ips}) && (!variables.link || {link})")
}

fn is_public(address: &str) -> String {
    format!("!{NOT_PUBLIC}.exists(c, cidr(c).containsIP({address}))")
}

fn public_ips(policy: &Policy) -> Vec<Validation> {
    let public = |condition: String| format!("variables.internal || ({condition})");
    let label = "azure-dns-label-name";
    let tag = |part: usize| format!("e.split('=')[{part}].trim()");
    let counted = format!(
        "size(e.split('=')) == 2 && {key} != '' && !{key}.lowerAscii().matches({})",
        quote(RESERVED_TAG),
        key = tag(0)
    );
    let mut all = vec![
        Validation::new(
            &INVALID_PUBLIC_IP_NAME,
            public(format!("[variables.name4, variables.name6].all(n, {})", matches("n", NAME))),
        ),
        Validation::new(
            &INVALID_RESOURCE_GROUP,
            format!(
                "({}) && (!variables.link || {})",
                public(is_group(&text("azure-load-balancer-resource-group"))),
                is_group(&text("azure-pls-resource-group"))
            ),
        ),
        Validation::new(
            &INVALID_DNS_LABEL,
            public(format!(
                "{label} == '' || {}",
                matches(&text(label), LABEL),
                label = text(label)
            )),
        ),
        Validation::new(
            &INVALID_TAG,
            public(format!(
                "{}.all(e, !({counted}) || (size({key}) <= 512 && size({}) <= 256 && \
                 !{key}.matches(r'[<>%&\\\\?/]')))",
                list("azure-pip-tags"),
                tag(1),
                key = tag(0)
            )),
        ),
    ];
    if let Some(listed) = &policy.tenancy.groups {
        let allowed = are_groups_allowed(policy, listed);
        all.push(Validation::new(&RESOURCE_GROUP_NOT_ALLOWED, allowed));
    }
    if policy.sku != BalancerSku::Basic {
        let name = NAME.trim_start_matches("^(").trim_end_matches(")?$");
        let prefix = format!(
            "^(/subscriptions/[^/]+/resourcegroups/{GROUP}/providers/microsoft[.]network/\
             publicipprefixes/{name})?$"
        );
        let valid = |family: u8| {
            let value = format!("variables.prefix{family}.lowerAscii()");
            let like = matches(&value, &prefix);
            let short = format!("size({value}.split('/')[4]) <= 90");
            format!("(variables.name{family} != '' || {value} == '' || ({like} && {short}))")
        };
        let valid = public(format!("{} && {}", valid(4), valid(6)));
        all.push(Validation::new(&INVALID_PUBLIC_IP_PREFIX, valid));
    }
    all
}

fn rules(policy: &Policy) -> Vec<Validation> {
    let silent = is_set_of_port("p", "no_lb_rule");
    let sctp = match policy.sku {
        BalancerSku::Standard => "variables.internal",
        BalancerSku::Basic | BalancerSku::Service => "false",
    };
    let longest = if policy.sku == BalancerSku::Basic { 30 } else { 100 };
    vec![
        Validation::idle_timeout(longest),
        Validation::new(
            &UNSUPPORTED_SCTP,
            format!(
                "variables.highAvailability || {sctp} || variables.ports.all(p, p.protocol != \
                 'SCTP' || {silent})"
            ),
        ),
        Validation::new(
            &NODE_PORTS_REQUIRED,
            format!(
                "variables.highAvailability || !(variables.translated || (variables.internal && \
                 'IPv6' in variables.families)) || variables.ports.all(p, {NODE_PORT} || {silent})"
            ),
        ),
    ]
}

fn access() -> Vec<Validation> {
    vec![
        Validation::new(
            &INVALID_SERVICE_TAG,
            format!(
                "(!{} || size({tags}) > 0) && {tags}.all(e, {})",
                present("azure-allowed-service-tags"),
                matches("e", "^([*]|[A-Za-z0-9._-]+)$"),
                tags = list("azure-allowed-service-tags")
            ),
        ),
        Validation::new(
            &INVALID_SOURCE_RANGE,
            format!(
                "(variables.annotatedRanges + variables.fieldRanges).all(e, {})",
                is_range("e")
            ),
        ),
        Validation::new(
            &CONFLICTING_SOURCE_RANGES,
            format!(
                "!variables.annotatedRanges.exists(e, {range}) || \
                 !variables.fieldRanges.exists(e, {range})",
                range = is_range("e")
            ),
        ),
    ]
}

fn private_links(policy: &Policy) -> Vec<Validation> {
    let link = |condition: String| format!("!variables.link || ({condition})");
    let count = text("azure-pls-ip-configuration-ip-address-count");
    let count = format!("({count} == '' ? '1' : {count})");
    let subscriptions =
        |key| format!("{}.all(e, {})", words(key), matches("e", "^([*]|[A-Za-z0-9-]+)$"));
    let mut all = vec![
        Validation::new(
            &PRIVATE_LINK_UNREACHABLE,
            link("variables.internal || variables.translated".into()),
        ),
        Validation::new(
            &PRIVATE_LINK_NEEDS_IPV4,
            link("variables.families.all(f, f == 'IPv4')".into()),
        ),
        Validation::new(&INVALID_PRIVATE_LINK_NAME, link(matches(&text("azure-pls-name"), NAME))),
        Validation::new(
            &INVALID_PRIVATE_LINK_COUNT,
            link(format!(
                "{} && int({count}) >= size(variables.linkAddresses)",
                is_whole(&count, 1, MOST_LINK_ADDRESSES)
            )),
        ),
        Validation::new(
            &INVALID_PRIVATE_LINK_ADDRESS,
            // More than these the count refuses: they need not be compared with one another.
            link(format!(
                "variables.linkAddresses.all(e, isIP(e) && ip(e).family() == 4) && \
                 (size(variables.linkAddresses) > {MOST_LINK_ADDRESSES} || \
                 variables.linkAddresses.all(e, size(variables.linkAddresses.filter(f, f == e)) \
                 == 1))"
            )),
        ),
        Validation::new(
            &INVALID_PRIVATE_LINK_FQDN,
            link(format!(
                "{}.all(e, {})",
                words("azure-pls-fqdns"),
                matches("e", "^[A-Za-z0-9.*_-]+$")
            )),
        ),
        Validation::new(
            &INVALID_SUBSCRIPTION,
            link(format!(
                "{} && {}",
                subscriptions("azure-pls-visibility"),
                subscriptions("azure-pls-auto-approval")
            )),
        ),
    ];
    if policy.sku != BalancerSku::Standard {
        let never = Validation::new(&PRIVATE_LINK_NEEDS_STANDARD, "!variables.link".into());
        all.push(never);
    }
    // Pools that another fills may hold NICs.
    let condition = match policy.preconfigured {
        _ if policy.pools != PoolKind::NodeIp => return all,
        Preconfigured::None => "!variables.link".to_owned(),
        Preconfigured::Internal => link("variables.internal".to_owned()),
        Preconfigured::External => link("!variables.internal".to_owned()),
        Preconfigured::All => return all,
    };
    all.push(Validation::new(&PRIVATE_LINK_NEEDS_NIC_POOLS, condition));
    all
}
