//! Label selectors (`metav1.LabelSelector`).

use crate::estate::{items, text};
use serde_json::Value;

/// Whether labels match a selector. An empty one matches everything.
pub(crate) fn matches(selector: &Value, labels: &Value) -> bool {
    let equal = selector["matchLabels"].as_object().into_iter().flatten();
    let mut equal = equal.map(|(key, value)| labels[key.as_str()] == *value);
    equal.all(|fits| fits) && items(&selector["matchExpressions"]).all(|e| expression(e, labels))
}

fn expression(expression: &Value, labels: &Value) -> bool {
    let label = &labels[text(&expression["key"])];
    let listed = items(&expression["values"]).any(|value| value == label);
    match text(&expression["operator"]) {
        "In" => label.is_string() && listed,
        "NotIn" => !listed,
        "Exists" => label.is_string(),
        "DoesNotExist" => !label.is_string(),
        _ => false,
    }
}
