//! What Resource Manager and the network provider refuse in any resource: its name, location,
//! zones and tags.
//!
//! Codes with a public source: InvalidResourceName, InvalidResourceLocation, LocationRequired,
//! LocationNotAvailableForResourceType, AvailabilityZoneNotSupported,
//! ResourceAvailabilityZonesCannotBeModified (Azure/azure-cli issue 16653),
//! InvalidTagNameCharacters. The others say what is wrong.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::azure::Azure;
use crate::json::{list, text};
use crate::message::{Checked, refusal, refuse};
use crate::path::{Route, kind, last};
use crate::store::Entry;

/// Azure documentation, "Use tags to organize your Azure resources", Limitations.
const MAX_TAGS: usize = 50;
const MAX_TAG_NAME: usize = 512;
const MAX_TAG_VALUE: usize = 256;
const TAG_NAME_RESERVED: &[char] = &['<', '>', '%', '&', '\\', '?', '/'];

/// Azure documentation, "Naming rules and restrictions for Azure resources", Microsoft.Network.
const MAX_NAME: usize = 80;

/// Names of Azure's public regions, beside the one the emulator is in.
const REGIONS: &[&str] = &[
    "australiacentral",
    "australiacentral2",
    "australiaeast",
    "australiasoutheast",
    "austriaeast",
    "belgiumcentral",
    "brazilsouth",
    "brazilsoutheast",
    "canadacentral",
    "canadaeast",
    "centralindia",
    "centralus",
    "chilecentral",
    "chinaeast",
    "chinaeast2",
    "chinaeast3",
    "chinanorth",
    "chinanorth2",
    "chinanorth3",
    "denmarkeast",
    "eastasia",
    "eastus",
    "eastus2",
    "francecentral",
    "francesouth",
    "germanynorth",
    "germanywestcentral",
    "global",
    "indonesiacentral",
    "israelcentral",
    "italynorth",
    "japaneast",
    "japanwest",
    "jioindiacentral",
    "jioindiawest",
    "koreacentral",
    "koreasouth",
    "malaysiawest",
    "mexicocentral",
    "newzealandnorth",
    "northcentralus",
    "northeurope",
    "norwayeast",
    "norwaywest",
    "polandcentral",
    "qatarcentral",
    "southafricanorth",
    "southafricawest",
    "southcentralus",
    "southeastasia",
    "southindia",
    "spaincentral",
    "swedencentral",
    "swedensouth",
    "switzerlandnorth",
    "switzerlandwest",
    "uaecentral",
    "uaenorth",
    "uksouth",
    "ukwest",
    "usgovarizona",
    "usgovtexas",
    "usgovvirginia",
    "westcentralus",
    "westeurope",
    "westindia",
    "westus",
    "westus2",
    "westus3",
];

fn plain(location: &str) -> String {
    location.replace(' ', "").to_lowercase()
}

/// Whether a kind has a location of its own.
fn is_tracked(kind: &str) -> bool {
    !matches!(kind, kind::SUBNET)
}

impl Azure {
    /// Refuses what no resource can be called, stand in or carry.
    pub(crate) fn check_envelope(
        &self,
        route: &Route,
        body: &Value,
        old: Option<&Entry>,
    ) -> Checked {
        let kind = route.kind();
        let network = kind.starts_with("microsoft.network/");
        if network && old.is_none() {
            check_name(route.name())?;
        }
        if is_tracked(&kind) && (network || kind.starts_with("microsoft.compute/")) {
            self.check_location(route, body, old)?;
            self.check_zones(route, body, old)?;
        }
        check_tags(body)
    }

    fn check_location(&self, route: &Route, body: &Value, old: Option<&Entry>) -> Checked {
        let given = text(body, &["location"]);
        if given.is_empty() {
            let message = "The location property is required for this definition.";
            return refuse("LocationRequired", message);
        }
        let standing = old.map_or("", |old| text(&old.value, &["location"]));
        if !standing.is_empty() && plain(given) != plain(standing) {
            let message = format!(
                "The resource '{}' already exists in location '{standing}'. A resource with the \
                 same name cannot be created in location '{given}'.",
                last(&route.path)
            );
            return Err(refusal(409, "InvalidResourceLocation", message));
        }
        let here = plain(given);
        if here == plain(&self.options.location) || REGIONS.contains(&here.as_str()) {
            return Ok(());
        }
        let message = format!(
            "The provided location '{given}' is not available for resource type '{}'. List of \
             available regions for the resource type is '{}'.",
            route.type_name(),
            REGIONS.join(",")
        );
        refuse("LocationNotAvailableForResourceType", message)
    }

    /// Zones are those of the region, and stay for life.
    fn check_zones(&self, route: &Route, body: &Value, old: Option<&Entry>) -> Checked {
        let zones = zones(body);
        let known: BTreeSet<&str> = self.options.zones.iter().map(String::as_str).collect();
        let here = plain(text(body, &["location"])) == plain(&self.options.location);
        if here && let Some(unknown) = zones.iter().find(|zone| !known.contains(*zone)) {
            let message = format!(
                "The zone(s) '{unknown}' for resource '{}/{}' is not supported. The supported \
                 zones for location '{}' are '{}'",
                route.type_name(),
                route.name(),
                self.options.location,
                self.options.zones.join(",")
            );
            return refuse("AvailabilityZoneNotSupported", message);
        }
        let fixed = matches!(route.kind().as_str(), kind::PIP | kind::PREFIX | kind::NAT);
        match old.map(|old| self::zones(&old.value)) {
            Some(standing) if fixed && standing != zones => {
                let named = |zones: &BTreeSet<&str>| match zones.is_empty() {
                    true => "NoZone".to_owned(),
                    false => zones.iter().copied().collect::<Vec<_>>().join(", "),
                };
                let message = format!(
                    "Resource {} has an existing availability zone constraint {} and the request \
                     has availability zone constraint {}, which do not match. Zones cannot be \
                     added/updated/removed once the resource is created. The resource cannot be \
                     updated from regional to zonal or vice-versa.",
                    route.path,
                    named(&standing),
                    named(&zones)
                );
                refuse("ResourceAvailabilityZonesCannotBeModified", message)
            }
            _ => Ok(()),
        }
    }
}

fn zones(value: &Value) -> BTreeSet<&str> {
    list(value, &["zones"]).iter().filter_map(Value::as_str).collect()
}

/// Refuses what no resource of Microsoft.Network and no element of one can be called.
pub(crate) fn check_name(name: &str) -> Checked {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let fine = name.chars().count() <= MAX_NAME
        && name.starts_with(char::is_alphanumeric)
        && name.ends_with(word)
        && name.chars().all(|c| word(c) || matches!(c, '.' | '-'));
    if fine {
        return Ok(());
    }
    let message = format!(
        "Resource name {name} is invalid. The name can be up to {MAX_NAME} characters long. It \
         must begin with a word character, and it must end with a word character or with '_'. The \
         name may contain word characters or '.', '-', '_'."
    );
    refuse("InvalidResourceName", message)
}

fn check_tags(body: &Value) -> Checked {
    let Some(tags) = body.get("tags").and_then(Value::as_object) else { return Ok(()) };
    if tags.len() > MAX_TAGS {
        let message = format!(
            "The number of tags, {}, exceeds the limit of {MAX_TAGS} tags of a resource.",
            tags.len()
        );
        return refuse("TagCountLimitExceeded", message);
    }
    for (name, value) in tags {
        if name.contains(TAG_NAME_RESERVED) || name.contains(char::is_control) {
            let message = format!(
                "The tag names '{name}' have reserved characters '<,>,%,&,\\,?,/' or control \
                 characters."
            );
            return refuse("InvalidTagNameCharacters", message);
        }
        if name.is_empty() || name.chars().count() > MAX_TAG_NAME {
            let message = format!("The tag name '{name}' must have 1 to {MAX_TAG_NAME} letters.");
            return refuse("InvalidTagNameLength", message);
        }
        if value.as_str().is_some_and(|value| value.chars().count() > MAX_TAG_VALUE) {
            let message =
                format!("The value of tag '{name}' has more than {MAX_TAG_VALUE} letters.");
            return refuse("InvalidTagValueLength", message);
        }
    }
    Ok(())
}
