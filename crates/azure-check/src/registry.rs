//! The one table of assumptions. Each id stands in brackets in `docs/dev/azure-facts.md`; a test
//! compares the two, both ways.

use crate::assumption::{Assumption, Section, Way};
use crate::probes::{
    echoes, etags, gateway, links, metrics, mistakes, operations, permissions, throttle, versions,
};
use Way::{Probe, Refusal, Seen, Untried};

macro_rules! assumptions {
    ($($id:expr, $section:ident, $way:expr, $assumed:literal;)*) => {
        /// All of them, in the order in which they are tried.
        pub static ASSUMPTIONS: &[Assumption] = &[$(
            Assumption { id: $id, assumed: $assumed, section: Section::$section, way: $way },
        )*];
    };
}

assumptions! {
    "role-permissions", Assumptions, Probe(permissions::role),
        "the credential has every permission of `ballast azure-role`";
    "api-version-network", ApiVersions, Probe(versions::network),
        "Microsoft.Network takes 2025-05-01";
    "api-version-service-load-balancer", ApiVersions, Probe(versions::service_load_balancers),
        "load balancers are read by 2025-09-01 in this cloud";
    "api-version-compute", ApiVersions, Probe(versions::compute),
        "Microsoft.Compute takes 2025-04-01";
    "api-version-providers", ApiVersions, Probe(versions::providers),
        "resource providers are read by 2021-04-01 and show zones";
    "api-version-missing", ApiVersions, Probe(versions::missing),
        "a request without api-version is refused: 400 MissingApiVersionParameter";
    "api-version-unknown", Refusals, Probe(versions::unknown),
        "an api-version that the provider does not have is refused: 400 NoRegisteredProviderFound";
    "refused-other-id", Refusals, Refusal(&mistakes::OTHER_ID),
        "a body's `id` unlike the URL is refused: 400 MismatchingResourceId";
    "refused-other-name", Refusals, Refusal(&mistakes::OTHER_NAME),
        "a body's `name` unlike the URL is refused: 400 MismatchingResourceName";
    "refused-long-name", Refusals, Refusal(&mistakes::LONG_NAME),
        "a name of 81 letters is refused: 400 InvalidResourceName";
    "refused-dash-name", Refusals, Refusal(&mistakes::DASH_NAME),
        "a name that ends in `-` is refused: 400 InvalidResourceName";
    "refused-no-location", Refusals, Refusal(&mistakes::NO_LOCATION),
        "a body without location is refused: 400 LocationRequired";
    "refused-unknown-location", Refusals, Refusal(&mistakes::UNKNOWN_LOCATION),
        "an unknown location is refused: 400 LocationNotAvailableForResourceType";
    "refused-other-location", Refusals, Refusal(&mistakes::OTHER_LOCATION),
        "another location than at creation is refused: 409 InvalidResourceLocation";
    "refused-unknown-zone", Refusals, Refusal(&mistakes::UNKNOWN_ZONE),
        "an unknown zone is refused: 400 AvailabilityZoneNotSupported";
    "refused-other-zones", Refusals, Refusal(&mistakes::OTHER_ZONES),
        "other zones than at creation are refused: 400 ResourceAvailabilityZonesCannotBeModified";
    "refused-other-ip-tags", Refusals, Refusal(&mistakes::OTHER_IP_TAGS),
        "other IP tags than at creation are refused, unless the subscription may change them: 400 \
         PublicIPAddressIpTagsCannotBeChanged";
    "refused-many-tags", Refusals, Refusal(&mistakes::MANY_TAGS),
        "51 tags are refused: 400 TagCountLimitExceeded";
    "refused-tag-characters", Refusals, Refusal(&mistakes::TAG_CHARACTERS),
        "a tag name with `/` is refused: 400 InvalidTagNameCharacters";
    "refused-tag-name", Refusals, Refusal(&mistakes::TAG_NAME),
        "a tag name of 513 letters is refused: 400 InvalidTagNameLength";
    "refused-tag-value", Refusals, Refusal(&mistakes::TAG_VALUE),
        "a tag value of 257 letters is refused: 400 InvalidTagValueLength";
    "refused-no-sku", Refusals, Refusal(&mistakes::NO_SKU),
        "a PUT without SKU over Standard is refused: 400 SkuCannotBeChangedOnUpdate";
    "refused-unknown-member", Refusals, Refusal(&mistakes::UNKNOWN_MEMBER),
        "an unknown member is refused: 400 InvalidRequestFormat, detail InvalidJson";
    "refused-unknown-outermost", Refusals, Refusal(&mistakes::UNKNOWN_OUTERMOST),
        "an unknown outermost member is refused: 400 InvalidRequestContent";
    "refused-other-type", Refusals, Refusal(&mistakes::OTHER_TYPE),
        "text for a number is refused: 400 InvalidRequestFormat, detail InvalidJson";
    "refused-compute-member", Refusals, Refusal(&mistakes::COMPUTE_MEMBER),
        "an unknown member of a scale set is refused: 400 BadRequest";
    "refused-not-json", Refusals,
        Untried("the transport of the controller always says that a body is JSON"),
        "a body that does not say that it is JSON is refused: 415 UnsupportedMediaType";
    "refused-overlapping-prefixes", Refusals, Refusal(&mistakes::OVERLAPPING),
        "overlapping prefixes are refused: 400 OverlappingSubnetsNotPermittedInSecurityRule";
    "refused-host-bits", Refusals, Refusal(&mistakes::HOST_BITS),
        "a prefix with host bits is refused: 400 SecurityRuleInvalidAddressPrefix";
    "refused-service-tag-in-list", Refusals, Refusal(&mistakes::SERVICE_TAG),
        "a service tag in a list is refused: 400 SecurityRuleParameterContainsUnsupportedValue";
    "refused-prefix-and-prefixes", Refusals, Refusal(&mistakes::PREFIX_AND_PREFIXES),
        "a prefix beside prefixes is refused: 400 \
         SecurityRuleBothAddressPrefixAndPrefixesSpecified";
    "refused-mixed-families", Refusals, Refusal(&mistakes::MIXED_FAMILIES),
        "an IPv4 source with an IPv6 destination is refused: 400 \
         SecurityRuleAddressPrefixFamiliesMixed";
    "refused-star-in-ports", Refusals, Refusal(&mistakes::STAR_IN_PORTS),
        "`*` in a list of ports is refused: 400 SecurityRuleInvalidPortRange";
    "refused-all-ports-on-public", Refusals, Refusal(&mistakes::ALL_PORTS_ON_PUBLIC),
        "all ports on a public frontend are refused: 400 \
         HighAvailabilityPortsNotAllowedOnPublicLoadBalancer";
    "refused-all-with-port-on-public", Refusals, Refusal(&mistakes::ALL_WITH_PORT_ON_PUBLIC),
        "protocol All with a port is refused on a public frontend: 400 \
         LoadBalancingRuleProtocolAllRequiresPortZero";
    "refused-static-without-address", Refusals, Refusal(&mistakes::STATIC_WITHOUT_ADDRESS),
        "a Static frontend without address is refused: 400 \
         PrivateIPAddressRequiredForStaticAllocation";
    "refused-zones-of-public-frontend", Refusals, Refusal(&mistakes::ZONES_OF_PUBLIC),
        "zones of a public frontend are refused: 400 \
         LoadBalancerFrontendIPConfigCannotHaveZoneWhenReferencingPublicIPAddress";
    "refused-pool-address-outside", Refusals, Refusal(&mistakes::ADDRESS_OUTSIDE),
        "a pool address outside its network is refused: 400 BackendAddressNotInVirtualNetwork";
    "refused-pool-address-without-name", Refusals, Refusal(&mistakes::ADDRESS_WITHOUT_NAME),
        "a pool address without a name is refused: 400 InvalidRequestFormat";
    "protocol-all-with-port-on-internal", Assumptions, Probe(links::protocol_all_with_port),
        "a rule of protocol All may have a port on an internal frontend";
    "if-match-public-ip", Assumptions, Probe(etags::put_public_ip),
        "`If-Match` is checked on a PUT of a public IP";
    "if-match-load-balancer", Assumptions, Probe(etags::put_load_balancer),
        "`If-Match` is checked on a PUT of a load balancer";
    "if-match-subnet", Assumptions, Probe(etags::put_subnet),
        "`If-Match` is checked on a PUT of a subnet";
    "if-match-nat-gateway", Assumptions, Probe(etags::put_nat_gateway),
        "`If-Match` is checked on a PUT of a NAT gateway";
    "if-match-delete-load-balancer", Assumptions, Probe(etags::delete_load_balancer),
        "`If-Match` is checked on a DELETE of a load balancer";
    "no-if-match-private-link-service", Assumptions, Probe(etags::put_link),
        "`If-Match` is not checked on a PUT of a Private Link Service";
    "no-if-match-flexible-scale-set", Assumptions, Probe(etags::put_flexible_set),
        "`If-Match` is not checked on a PUT of the model of a Flexible scale set";
    "if-none-match-public-ip", Assumptions, Probe(etags::absent_public_ip),
        "`If-None-Match: *` refuses to replace a public IP";
    "if-none-match-load-balancer", Assumptions, Probe(etags::absent_load_balancer),
        "`If-None-Match: *` refuses to replace a load balancer";
    "if-none-match-nat-gateway", Assumptions, Probe(etags::absent_nat_gateway),
        "`If-None-Match: *` refuses to replace a NAT gateway";
    "if-none-match-private-link-service", Assumptions, Probe(etags::absent_link),
        "`If-None-Match: *` refuses to replace a Private Link Service";
    "etag-of-pool", LoadBalancers, Probe(etags::pool_and_load_balancer),
        "the ETag of a pool and of its load balancer change together";
    "health-probe-metric", LoadBalancers, Probe(metrics::probe_status),
        "Azure Monitor answers 2018-01-01 for `DipAvailability` by frontend and backend";
    "health-probe-metric-dimensions", LoadBalancers, Probe(metrics::unknown_dimension),
        "a dimension that `DipAvailability` does not have is refused: 400";
    "echo-nic", Assumptions, Probe(echoes::nic),
        "a NIC may be sent back with its read-only fields";
    "echo-subnet", Assumptions, Probe(echoes::subnet),
        "a subnet may be sent back with its read-only fields";
    "ipv6-beside-private-link-service", Assumptions, Probe(links::ipv6_beside),
        "an IPv6 frontend is refused on a load balancer with a Private Link Service: 400";
    "addresses-beside-private-link-service", LoadBalancers, Probe(links::addresses_beside),
        "a pool of addresses is refused on a load balancer with a Private Link Service: 400 \
         PrivateLinkServiceIsNotSupportedForIPBasedLoadBalancer";
    "private-link-services-of-load-balancer", Assumptions, Probe(links::of_load_balancer),
        "a load balancer takes 8 Private Link Services; the ninth is refused: 400";
    "private-link-services-of-subscription", Assumptions,
        Untried("it would take 801 Private Link Services"),
        "a subscription takes 800 Private Link Services";
    "sku-standardv2-public-ip", ApiVersions, Probe(versions::standard_v2_address),
        "a public IP may be of SKU StandardV2";
    "sku-standardv2-nat-gateway", ApiVersions, Probe(versions::standard_v2_nat),
        "a NAT gateway may be of SKU StandardV2";
    "sku-service-load-balancer", ApiVersions, Probe(versions::service_load_balancer),
        "a load balancer may be of SKU Service by 2025-09-01";
    "permissions-below-service-gateway", Assumptions, Probe(permissions::below_gateway),
        "the permissions below a Service Gateway are called as in `ballast azure-role`";
    "absent-keeps-service-gateway", Assumptions, Probe(echoes::absent_keeps),
        "a PUT of a NAT gateway without `serviceGateway` leaves it";
    "null-clears-service-gateway", Assumptions, Probe(echoes::null_clears),
        "a PUT of a NAT gateway with `serviceGateway: null` clears it";
    "null-clears-registration", Assumptions, Probe(gateway::null_clears_registration),
        "a registration with `publicNatGatewayId: null` lets go of its NAT gateway";
    "services-per-call", Assumptions, Probe(gateway::services_per_call),
        "one call registers 100 services";
    "addresses-per-call", Assumptions, Probe(gateway::addresses_per_call),
        "one call maps 20,000 addresses with one name each";
    "list-lag", Calls, Probe(operations::list_lag),
        "a list shows within 10 s what a PUT made";
    "delete-absent", Calls, Probe(operations::delete_absent),
        "a DELETE of what does not stand is a 204";
    "letter-case", Calls, Probe(operations::letter_case),
        "ids are compared without regard to letter case";
    "operation-of-put", Calls, Seen(operations::of_put),
        "a PUT that has not ended names its operation in `Azure-AsyncOperation`";
    "operation-of-delete", Calls, Seen(operations::of_delete),
        "a DELETE that has not ended is a 202 with `Azure-AsyncOperation` and `Location`";
    "operation-status", Calls, Seen(operations::polls),
        "a poll of `Azure-AsyncOperation` is a 200 with `status`";
    operations::BESIDE, Assumptions, Seen(operations::beside),
        "a PUT answered Succeeded beside `Azure-AsyncOperation` is at its end";
    "operation-time", Calls, Seen(operations::longest),
        "an operation ends within 1 h";
    "remaining-of-subscription", Calls, Seen(throttle::of_subscription),
        "each answer has `x-ms-ratelimit-remaining-subscription-reads`, `-writes` or `-deletes`";
    "buckets-of-subscription", Calls, Seen(throttle::buckets),
        "a principal has at most 250 reads, 200 writes and 200 deletes left in a subscription";
    "remaining-of-compute", Calls, Seen(throttle::of_compute),
        "writes of Microsoft.Compute have `x-ms-ratelimit-remaining-resource`";
    "polls-count", Calls,
        Untried("only 1,000 writes in five minutes show it, and the subscription is in use"),
        "polls of operations count among the network provider's reads";
    "admin-state-of-nic", LoadBalancers,
        Untried("the request is not published, and a NIC drains only where traffic comes"),
        "the admin state of a network interface cannot be written as that of an address can";
    "udp-flow", LoadBalancers, Untried("it takes traffic to a machine, and this makes none"),
        "a UDP flow is forgotten after 4 min";
}
