//! Each mistake that Azure is expected to refuse.

use super::refusals::Base::{
    InternalBalancer, NamedIp, NewIp, PublicBalancer, ScaleSet, SecurityGroup, StandingIp,
};
use super::refusals::{Base, Refusal};
use crate::estate;
use crate::site::Site;
use serde_json::{Map, Value, json};

const fn refusal(base: Base, code: &'static str, mistake: fn(&mut Value, &Site)) -> Refusal {
    Refusal { base, mistake, status: 400, code, detail: None }
}

const fn malformed(base: Base, mistake: fn(&mut Value, &Site)) -> Refusal {
    let plain = refusal(base, "InvalidRequestFormat", mistake);
    Refusal { detail: Some("InvalidJson"), ..plain }
}

/// The name of most letters that a run's prefix leaves room for, and one more.
fn long_name(site: &Site) -> String {
    let prefix = site.name("");
    format!("{prefix}{}", "a".repeat(81 - prefix.len()))
}

fn rule_with(body: &mut Value, members: Value) {
    let rule = &mut body["properties"]["securityRules"][0]["properties"];
    for (name, value) in members.as_object().into_iter().flatten() {
        rule[name] = value.clone();
    }
}

fn sources(body: &mut Value, all: Value) {
    rule_with(body, json!({"sourceAddressPrefix": null, "sourceAddressPrefixes": all}));
}

fn balancing_rule(body: &mut Value, protocol: &str, port: u16) {
    let rule = &mut body["properties"]["loadBalancingRules"][0]["properties"];
    rule["protocol"] = json!(protocol);
    rule["frontendPort"] = json!(port);
    rule["backendPort"] = json!(port);
}

fn tag(body: &mut Value, name: String, value: String) {
    body["tags"][name] = json!(value);
}

fn many_tags(body: &mut Value) {
    let tags: Map<String, Value> = (0..51).map(|n| (format!("t{n}"), json!("x"))).collect();
    body["tags"] = Value::Object(tags);
}

pub(crate) static OTHER_ID: Refusal = refusal(NewIp, "MismatchingResourceId", |body, site| {
    body["id"] = json!(site.id(estate::PIP, "another-ip"));
});
pub(crate) static OTHER_NAME: Refusal = refusal(NewIp, "MismatchingResourceName", |body, site| {
    body["name"] = json!(site.name("another-ip"));
});
pub(crate) static LONG_NAME: Refusal =
    refusal(NamedIp(long_name), "InvalidResourceName", |_, _| {});
pub(crate) static DASH_NAME: Refusal =
    refusal(NamedIp(|site| site.name("ends-")), "InvalidResourceName", |_, _| {});
pub(crate) static NO_LOCATION: Refusal = refusal(NewIp, "LocationRequired", |body, _| {
    body["location"] = Value::Null;
});
pub(crate) static UNKNOWN_LOCATION: Refusal =
    refusal(NewIp, "LocationNotAvailableForResourceType", |body, _| {
        body["location"] = json!("atlantis");
    });
pub(crate) static OTHER_LOCATION: Refusal = Refusal {
    status: 409,
    ..refusal(StandingIp, "InvalidResourceLocation", |body, site| {
        body["location"] = json!(site.elsewhere());
    })
};
pub(crate) static UNKNOWN_ZONE: Refusal =
    refusal(NewIp, "AvailabilityZoneNotSupported", |body, _| body["zones"] = json!(["9"]));
pub(crate) static OTHER_ZONES: Refusal =
    refusal(StandingIp, "ResourceAvailabilityZonesCannotBeModified", |body, _| {
        body["zones"] = json!(["1"]);
    });
pub(crate) static OTHER_IP_TAGS: Refusal =
    refusal(StandingIp, "PublicIPAddressIpTagsCannotBeChanged", |body, _| {
        body["properties"]["ipTags"] =
            json!([{"ipTagType": "RoutingPreference", "tag": "Internet"}]);
    });
pub(crate) static MANY_TAGS: Refusal =
    refusal(NewIp, "TagCountLimitExceeded", |body, _| many_tags(body));
pub(crate) static TAG_CHARACTERS: Refusal =
    refusal(NewIp, "InvalidTagNameCharacters", |body, _| {
        tag(body, "a/b".to_owned(), "x".to_owned());
    });
pub(crate) static TAG_NAME: Refusal = refusal(NewIp, "InvalidTagNameLength", |body, _| {
    tag(body, "a".repeat(513), "x".to_owned());
});
pub(crate) static TAG_VALUE: Refusal = refusal(NewIp, "InvalidTagValueLength", |body, _| {
    tag(body, "a".to_owned(), "x".repeat(257));
});
pub(crate) static NO_SKU: Refusal =
    refusal(StandingIp, "SkuCannotBeChangedOnUpdate", |body, _| body["sku"] = Value::Null);
pub(crate) static UNKNOWN_MEMBER: Refusal =
    malformed(NewIp, |body, _| body["properties"]["nonsense"] = json!(1));
pub(crate) static UNKNOWN_OUTERMOST: Refusal =
    refusal(NewIp, "InvalidRequestContent", |body, _| body["proprties"] = json!({}));
pub(crate) static OTHER_TYPE: Refusal =
    malformed(NewIp, |body, _| body["properties"]["idleTimeoutInMinutes"] = json!("four"));
pub(crate) static COMPUTE_MEMBER: Refusal =
    refusal(ScaleSet, "BadRequest", |body, _| body["properties"]["nonsense"] = json!(1));
pub(crate) static OVERLAPPING: Refusal =
    refusal(SecurityGroup, "OverlappingSubnetsNotPermittedInSecurityRule", |body, _| {
        sources(body, json!(["10.0.0.0/8", "10.1.0.0/16"]));
    });
pub(crate) static HOST_BITS: Refusal =
    refusal(SecurityGroup, "SecurityRuleInvalidAddressPrefix", |body, _| {
        rule_with(body, json!({"sourceAddressPrefix": "10.0.0.1/8"}));
    });
pub(crate) static SERVICE_TAG: Refusal =
    refusal(SecurityGroup, "SecurityRuleParameterContainsUnsupportedValue", |body, _| {
        sources(body, json!(["10.0.0.0/8", "Internet"]));
    });
pub(crate) static PREFIX_AND_PREFIXES: Refusal =
    refusal(SecurityGroup, "SecurityRuleBothAddressPrefixAndPrefixesSpecified", |body, _| {
        rule_with(body, json!({"sourceAddressPrefixes": ["11.0.0.0/8"]}));
    });
pub(crate) static MIXED_FAMILIES: Refusal =
    refusal(SecurityGroup, "SecurityRuleAddressPrefixFamiliesMixed", |body, _| {
        rule_with(body, json!({"destinationAddressPrefix": "2001:db8::1"}));
    });
pub(crate) static STAR_IN_PORTS: Refusal =
    refusal(SecurityGroup, "SecurityRuleInvalidPortRange", |body, _| {
        let ports = json!(["80", "*"]);
        rule_with(body, json!({"destinationPortRange": null, "destinationPortRanges": ports}));
    });
pub(crate) static ALL_PORTS_ON_PUBLIC: Refusal =
    refusal(PublicBalancer, "HighAvailabilityPortsNotAllowedOnPublicLoadBalancer", |body, _| {
        balancing_rule(body, "All", 0);
    });
pub(crate) static ALL_WITH_PORT_ON_PUBLIC: Refusal =
    refusal(PublicBalancer, "LoadBalancingRuleProtocolAllRequiresPortZero", |body, _| {
        balancing_rule(body, "All", 80);
    });
pub(crate) static STATIC_WITHOUT_ADDRESS: Refusal =
    refusal(InternalBalancer, "PrivateIPAddressRequiredForStaticAllocation", |body, _| {
        let front = &mut body["properties"]["frontendIPConfigurations"][0]["properties"];
        front["privateIPAllocationMethod"] = json!("Static");
    });
pub(crate) static ZONES_OF_PUBLIC: Refusal = refusal(
    PublicBalancer,
    "LoadBalancerFrontendIPConfigCannotHaveZoneWhenReferencingPublicIPAddress",
    |body, _| body["properties"]["frontendIPConfigurations"][0]["zones"] = json!(["1"]),
);
pub(crate) static ADDRESS_OUTSIDE: Refusal =
    refusal(InternalBalancer, "BackendAddressNotInVirtualNetwork", |body, _| {
        let address = json!({"name": "a", "properties": {"ipAddress": "192.168.0.4"}});
        let pool = &mut body["properties"]["backendAddressPools"][0]["properties"];
        pool["loadBalancerBackendAddresses"] = json!([address]);
    });
pub(crate) static ADDRESS_WITHOUT_NAME: Refusal =
    refusal(InternalBalancer, "InvalidRequestFormat", |body, _| {
        let address = json!({"properties": {"ipAddress": "10.77.0.200"}});
        let pool = &mut body["properties"]["backendAddressPools"][0]["properties"];
        pool["loadBalancerBackendAddresses"] = json!([address]);
    });
