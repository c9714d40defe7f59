//! Ways in which the real answers are uneven: letter case, texts of addresses, empty lists,
//! properties from the future.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::json::text;
use crate::message::{Answer, Shown};
use crate::options::{Empties, Options, Switch};

/// Lists that Azure sometimes leaves out, sends as null, or sends empty: those of load balancers,
/// then those of other kinds.
const LISTS: &[&str] = &[
    "frontendIPConfigurations",
    "backendAddressPools",
    "loadBalancingRules",
    "probes",
    "inboundNatRules",
    "inboundNatPools",
    "outboundRules",
    "securityRules",
    "ipTags",
];

/// How many of them a load balancer has.
const OF_BALANCERS: usize = 7;

const ADDRESSES: &[&str] = &["ipAddress", "privateIPAddress", "address", "addressLocation"];

/// A property that answers carry and no contract has.
pub(crate) const FUTURE_PROPERTY: &str = "futureProperty";

/// A cache of resources after the quirks, valid while the originals are the same values in memory:
/// most resources in a list have not changed since the last one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Uneven {
    options: Option<(Switch, Switch, Empties, Switch)>,
    /// By the pointer to the original, which is kept so that no other value gets that address.
    made: BTreeMap<usize, (Arc<Value>, Arc<Value>)>,
}

impl Uneven {
    /// Resources that are held at most.
    const MOST: usize = 256;

    fn item(&mut self, options: &Options, item: &mut Arc<Value>) {
        let Options { shout_ids, odd_ipv6, empties, unknown_fields, .. } = options;
        let now = Some((*shout_ids, *odd_ipv6, *empties, *unknown_fields));
        if self.options != now || self.made.len() >= Self::MOST {
            self.made.clear();
            self.options = now;
        }
        let (_, made) = self.made.entry(Arc::as_ptr(item).addr()).or_insert_with(|| {
            let mut made = Arc::clone(item);
            apply_to_item(options, Arc::make_mut(&mut made));
            (Arc::clone(item), made)
        });
        *item = Arc::clone(made);
    }
}

/// Applies the quirks that are switched on. What is shared is copied only if one is.
pub(crate) fn apply(options: &Options, uneven: &mut Uneven, answer: &mut Answer) {
    let walks = options.shout_ids.is_on() || options.odd_ipv6.is_on();
    if !walks && options.empties == Empties::AsWritten && !options.unknown_fields.is_on() {
        return;
    }
    if let Some(body) = &mut answer.body {
        apply_to(options, body);
    }
    match &mut answer.shown {
        Shown::Nothing => {}
        Shown::One(one) => uneven.item(options, one),
        Shown::Page { items, .. } => {
            items.iter_mut().for_each(|item| uneven.item(options, item));
        }
    }
}

/// One resource, whatever fields it has.
fn apply_to_item(options: &Options, item: &mut Value) {
    walk(options, item);
    if options.empties != Empties::AsWritten || options.unknown_fields.is_on() {
        resource(options, item);
    }
}

fn apply_to(options: &Options, body: &mut Value) {
    let walks = options.shout_ids.is_on() || options.odd_ipv6.is_on();
    if walks {
        walk(options, body);
    }
    if options.empties == Empties::AsWritten && !options.unknown_fields.is_on() {
        return;
    }
    match body.get_mut("value").and_then(Value::as_array_mut) {
        Some(items) => items.iter_mut().for_each(|item| resource(options, item)),
        None => resource(options, body),
    }
}

fn walk(options: &Options, value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| walk(options, item)),
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(string) if key == "id" && options.shout_ids.is_on() => {
                        shout(string);
                    }
                    Value::String(string)
                        if options.odd_ipv6.is_on() && ADDRESSES.contains(&key.as_str()) =>
                    {
                        write_out(string);
                    }
                    other => walk(options, other),
                }
            }
        }
        _ => {}
    }
}

fn shout(id: &mut String) {
    if id.starts_with("/subscriptions/") {
        *id = id.to_uppercase();
    }
}

fn write_out(address: &mut String) {
    if let Ok(parsed) = address.parse::<Ipv6Addr>() {
        let parts: Vec<String> = parsed.segments().iter().map(|part| format!("{part:X}")).collect();
        *address = parts.join(":");
    }
}

fn resource(options: &Options, value: &mut Value) {
    let is_balancer =
        text(value, &["type"]).eq_ignore_ascii_case("Microsoft.Network/loadBalancers");
    let Some(properties) = value.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    empties(options, properties, is_balancer);
    if options.unknown_fields.is_on() {
        properties.insert(FUTURE_PROPERTY.to_owned(), json!({"mode": "NotYetInvented"}));
    }
}

fn empties(options: &Options, properties: &mut Map<String, Value>, is_balancer: bool) {
    for (at, key) in LISTS.iter().enumerate() {
        let has = properties.contains_key(*key) || (is_balancer && at < OF_BALANCERS);
        let empty = properties
            .get(*key)
            .is_none_or(|found| found.is_null() || found.as_array().is_some_and(Vec::is_empty));
        if !empty || !has {
            continue;
        }
        match options.empties {
            Empties::AsWritten => {}
            Empties::List => {
                properties.insert((*key).to_owned(), json!([]));
            }
            Empties::Null => {
                properties.insert((*key).to_owned(), Value::Null);
            }
            Empties::Absent => {
                properties.shift_remove(*key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Switch;

    #[test]
    fn quirks_change_the_text_and_nothing_else() {
        let mut options = Options::default();
        let plain = json!({"id": "/subscriptions/s/a", "type": "Microsoft.Network/loadBalancers",
            "properties": {"probes": [], "ipAddress": "2603:1000::1", "name": "x"}});
        let mut body = plain.clone();
        apply_to(&options, &mut body);
        assert_eq!(body, plain);
        options.shout_ids = Switch::On;
        options.odd_ipv6 = Switch::On;
        options.unknown_fields = Switch::On;
        options.empties = Empties::Null;
        apply_to(&options, &mut body);
        assert_eq!(body["id"], "/SUBSCRIPTIONS/S/A");
        assert_eq!(body["properties"]["ipAddress"], "2603:1000:0:0:0:0:0:1");
        assert!(body["properties"].as_object().unwrap()["probes"].is_null());
        assert!(body["properties"].as_object().unwrap().contains_key("outboundRules"));
        assert_eq!(body["properties"].get("securityRules"), None, "no load balancer has them");
        assert_eq!(body["properties"]["futureProperty"]["mode"], "NotYetInvented");
    }
}
