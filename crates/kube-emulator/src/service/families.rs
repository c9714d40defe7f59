//! IP families of a Service and their policy.

use super::claims::family_of;
use super::{Numbers, has_cluster_ip, is_headless};
use crate::json::{at, child, drop_key, items, text, texts};
use crate::status::FieldFault;
use serde_json::{Value, json};

pub(super) const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];

/// Settles `clusterIPs`, `ipFamilies` and `ipFamilyPolicy`. Addresses are allocated later.
pub(super) fn settle(
    numbers: &Numbers,
    old: Option<&Value>,
    service: &mut Value,
) -> Vec<FieldFault> {
    if !has_cluster_ip(service) {
        return Vec::new();
    }
    join_cluster_ips(service);
    let policy = text(service, "/spec/ipFamilyPolicy").to_string();
    if let Some(old) = old {
        shrink(old, service, &policy);
    }
    let faults = input_faults(service, &policy);
    if !faults.is_empty() {
        return faults;
    }
    let selectorless = items_of_map(service, "/spec/selector") == 0;
    let everywhere = is_headless(service) && selectorless;
    let policy = match policy.as_str() {
        "" if everywhere => "RequireDualStack",
        "" => "SingleStack",
        given => given,
    };
    let mut families = texts(service, "/spec/ipFamilies");
    for address in texts(service, "/spec/clusterIPs") {
        if let Some(family) = family_of(&address)
            && !families.iter().any(|one| one == family)
        {
            families.push(family.to_string());
        }
    }
    if families.is_empty() {
        families.push(numbers.main_family().to_string());
    }
    if policy != "SingleStack" && families.len() == 1 {
        let other = FAMILIES.iter().find(|family| **family != families[0]);
        let served = |family: &&&str| everywhere || numbers.serves(family);
        families.extend(other.filter(served).map(|family| (*family).to_string()));
    }
    let policy = policy.to_string();
    let spec = child(service, "spec");
    spec.insert("ipFamilies".to_string(), json!(families));
    spec.insert("ipFamilyPolicy".to_string(), json!(policy));
    Vec::new()
}

fn items_of_map(service: &Value, pointer: &str) -> usize {
    at(service, pointer).as_object().map_or(0, |map| map.len())
}

/// `clusterIP` and `clusterIPs[0]` are one value in two places; old clients know only the first.
fn join_cluster_ips(service: &mut Value) {
    let single = text(service, "/spec/clusterIP").to_string();
    let list = texts(service, "/spec/clusterIPs");
    let spec = child(service, "spec");
    if list.is_empty() && !single.is_empty() {
        spec.insert("clusterIPs".to_string(), json!([single]));
    } else if single.is_empty() && !list.is_empty() {
        spec.insert("clusterIP".to_string(), json!(list[0]));
    }
}

/// Going back to one family drops the second one, if the client left it as it was.
fn shrink(old: &Value, service: &mut Value, policy: &str) {
    let was_dual = items(old, "/spec/ipFamilies").len() == 2;
    if policy != "SingleStack" || !was_dual {
        return;
    }
    for field in ["ipFamilies", "clusterIPs"] {
        let pointer = format!("/spec/{field}");
        if at(old, &pointer) == at(service, &pointer) {
            let first = items(service, &pointer).first().cloned();
            let spec = child(service, "spec");
            match first {
                Some(first) => {
                    spec.insert(field.to_string(), json!([first]));
                }
                None => {
                    drop_key(spec, field);
                }
            }
        }
    }
}

fn input_faults(service: &Value, policy: &str) -> Vec<FieldFault> {
    let mut faults = Vec::new();
    let policies = ["SingleStack", "PreferDualStack", "RequireDualStack"];
    if !policy.is_empty() && !policies.contains(&policy) {
        let field = "spec.ipFamilyPolicy";
        faults.push(FieldFault::unsupported(field, &json!(policy), &policies));
    }
    let (families, addresses) =
        (texts(service, "/spec/ipFamilies"), texts(service, "/spec/clusterIPs"));
    for (field, list) in [("ipFamilies", &families), ("clusterIPs", &addresses)] {
        if list.len() > 1 && (policy.is_empty() || policy == "SingleStack") {
            let why = format!(
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple '{field}' are \
                 specified"
            );
            let value = if policy.is_empty() { Value::Null } else { json!(policy) };
            faults.push(FieldFault::invalid("spec.ipFamilyPolicy", &value, &why));
        }
        if list.len() > 2 {
            let why = "may only hold up to 2 values";
            faults.push(FieldFault::invalid(format!("spec.{field}"), &json!(list), why));
        }
        if list.len() == 2 && list[0] == list[1] {
            faults.push(FieldFault::duplicate(format!("spec.{field}[1]"), &json!(list[1])));
        }
    }
    for (index, family) in families.iter().enumerate() {
        let field = format!("spec.ipFamilies[{index}]");
        if !FAMILIES.contains(&family.as_str()) {
            faults.push(FieldFault::unsupported(field, &json!(family), &FAMILIES));
        }
    }
    if text(service, "/spec/clusterIP") != addresses.first().map_or("", String::as_str) {
        let why = "must match `clusterIP`";
        faults.push(FieldFault::invalid("spec.clusterIPs", &json!(addresses), why));
    }
    for (index, address) in addresses.iter().enumerate().filter(|(_, one)| *one != "None") {
        let field = format!("spec.clusterIPs[{index}]");
        let family = family_of(address);
        if family.is_none() {
            let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            faults.push(FieldFault::invalid(field, &json!(address), why));
        } else if families.get(index).is_some_and(|wanted| Some(wanted.as_str()) != family) {
            let why = format!("expected an {} value as indicated by `ipFamilies`", families[index]);
            faults.push(FieldFault::invalid(field, &json!(address), &why));
        }
    }
    faults
}
