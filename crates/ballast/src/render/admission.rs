//! The rules as `ValidatingAdmissionPolicy` objects.

use admission_rules::{Action, AdmissionPolicy};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const HEADING: &str = "# Made by `ballast lint --admission-policy`. Kubernetes 1.31 or later.\n";
const GROUP: &str = "admissionregistration.k8s.io/v1";

/// The objects, ready for `kubectl apply -f`.
///
/// `classes` are the values of `spec.loadBalancerClass` that are ours beside none.
#[must_use]
pub fn objects(policies: &[AdmissionPolicy], classes: &BTreeSet<String>) -> Vec<Value> {
    policies.iter().flat_map(|policy| [definition(policy, classes), binding(policy)]).collect()
}

fn name(policy: &AdmissionPolicy) -> &'static str {
    match policy.action {
        Action::Deny => "ballast-refused",
        Action::Warn => "ballast-noted",
    }
}

fn definition(policy: &AdmissionPolicy, classes: &BTreeSet<String>) -> Value {
    let variables: Vec<Value> = policy
        .variables
        .iter()
        .map(|(name, expression)| json!({"name": name, "expression": expression}))
        .collect();
    let validations: Vec<Value> = policy
        .validations
        .iter()
        .map(|v| json!({"expression": v.expression, "message": v.message, "reason": "Invalid"}))
        .collect();
    json!({
        "apiVersion": GROUP,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name(policy)},
        "spec": {
            // What Ballast refuses by itself need not be kept out at any price.
            "failurePolicy": "Ignore",
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"],
                "resources": ["services"],
            }]},
            "matchConditions": conditions(classes),
            "variables": variables,
            "validations": validations,
        },
    })
}

/// Which Services are looked at: ours, where what they ask for is new. One that was wrong before
/// the policy came can still be changed elsewhere, and go.
fn conditions(classes: &BTreeSet<String>) -> Vec<Value> {
    let classes: Vec<String> = classes.iter().map(|class| format!("r'{class}'")).collect();
    let class = format!(
        "!has(object.spec.loadBalancerClass) || object.spec.loadBalancerClass in [{}]",
        classes.join(", ")
    );
    vec![
        json!({"name": "load-balancer", "expression": "has(object.spec.type) && \
            object.spec.type == 'LoadBalancer'"}),
        json!({"name": "class", "expression": class}),
        json!({"name": "changed", "expression": format!(
            "request.operation == 'CREATE' || object.spec != oldObject.spec || {} != {}",
            annotations("object"), annotations("oldObject")
        )}),
        json!({"name": "alive", "expression": "!has(object.metadata.deletionTimestamp)"}),
    ]
}

fn annotations(of: &str) -> String {
    format!("(has({of}.metadata.annotations) ? {of}.metadata.annotations : {{}})")
}

/// All objects as one YAML text.
///
/// # Errors
/// YAML cannot be written.
pub fn yaml(objects: &[Value]) -> Result<String, serde_saphyr::ser::Error> {
    let mut text = String::from(HEADING);
    for object in objects {
        let yaml = serde_saphyr::to_string(object)?;
        text.push_str("---\n");
        text.push_str(yaml.trim_end());
        text.push('\n');
    }
    Ok(text)
}

fn binding(policy: &AdmissionPolicy) -> Value {
    let action = match policy.action {
        Action::Deny => "Deny",
        Action::Warn => "Warn",
    };
    json!({
        "apiVersion": GROUP,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name(policy)},
        "spec": {"policyName": name(policy), "validationActions": [action]},
    })
}
