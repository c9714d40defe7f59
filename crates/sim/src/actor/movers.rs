//! Services that change nothing but where their public IPs come from: from a prefix, or not. One
//! keeps its DNS label, which Azure has but once; another one has two families.

use super::Company;
use super::user::{annotation, key};
use super::values::key::{LABEL, PREFIX};
use crate::scene::{Layout, network, objects};
use crate::stage::Stage;
use serde_json::{Value, json};

const NAMESPACE: &str = "default";
const NAME: &str = "mover-";
/// The first of their numbers.
const FIRST: u64 = 720;
const PREFIX_IPV6: &str = "azure-pip-prefix-id-ipv6";
/// Who has a label.
const LABELLED: u64 = 0;
/// Who has two families.
const DUAL: u64 = 1;

fn place(number: u64) -> (String, String) {
    (NAMESPACE.to_owned(), format!("{NAME}{number}"))
}

/// Whether a Service, as `namespace/name`, is one of them: each of its rules stays all along.
#[must_use]
pub fn is_mover(service: &str) -> bool {
    service.strip_prefix("default/").is_some_and(|name| name.starts_with(NAME))
}

fn service(number: u64) -> Value {
    let mut service = objects::service(NAMESPACE, FIRST + number);
    service["metadata"]["name"] = json!(place(number).1);
    if number == LABELLED {
        service["metadata"]["annotations"][key(LABEL)] = json!("mover");
    } else {
        service["spec"]["ipFamilyPolicy"] = json!("RequireDualStack");
        service["spec"]["ipFamilies"] = json!(["IPv4", "IPv6"]);
    }
    service
}

impl Company {
    /// They come. An IPv6 frontend and a Private Link Service exclude each other.
    pub(crate) fn bring_movers(&mut self, stage: &mut Stage) {
        let layout = self.scene.layout;
        if matches!(layout, Layout::Single | Layout::Nics) {
            self.services.insert(place(LABELLED), service(LABELLED));
        }
        if layout == Layout::Single {
            self.services.insert(place(DUAL), service(DUAL));
        }
        self.tend(stage);
    }

    /// Each takes its public IPs from a prefix, or not any more: of two families the second one's
    /// alone.
    pub(crate) fn move_on(&mut self, stage: &mut Stage) {
        let all = [
            (LABELLED, PREFIX, "publicIPPrefixes/theirs-prefix"),
            (DUAL, PREFIX_IPV6, "publicIPPrefixes/theirs-prefix6"),
        ];
        for (number, suffix, prefix) in all {
            let Some(standing) = self.services.get(&place(number)) else { continue };
            let own = standing["metadata"]["annotations"][key(suffix)].is_null();
            let from = if own { json!(network(prefix)) } else { Value::Null };
            self.apply(stage, &place(number), &annotation(suffix, from));
        }
    }
}
