//! Label and field selectors.

use crate::json::text;
use crate::kinds::Kind;
use crate::status::ApiError;
use serde_json::{Map, Value};

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
}

/// A label selector, equality and set based.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<(String, Test)>);

impl LabelSelector {
    /// Reads the text form, such as `app=web,tier in (a, b),!old`.
    pub fn parse(text: &str) -> Result<Self, ApiError> {
        let terms = split_terms(text).into_iter().filter(|term| !term.is_empty());
        let parsed: Option<Vec<(String, Test)>> = terms.map(parse_label_term).collect();
        parsed.map(Self).ok_or_else(|| {
            ApiError::bad_request(format!(
                "unable to parse requirement: {text:?} is not a label selector; \
                 write key=value, key!=value, key in (a,b), key notin (a,b), key or !key"
            ))
        })
    }

    /// Whether an object's labels fit.
    pub fn matches(&self, object: &Value) -> bool {
        let labels = crate::json::find(object, "/metadata/labels").and_then(Value::as_object);
        self.0.iter().all(|(key, test)| fits(labels, key, test))
    }
}

fn fits(labels: Option<&Map<String, Value>>, key: &str, test: &Test) -> bool {
    let value = labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
    match test {
        Test::In(allowed) => value.is_some_and(|value| allowed.iter().any(|one| one == value)),
        Test::NotIn(banned) => !value.is_some_and(|value| banned.iter().any(|one| one == value)),
        Test::Exists => value.is_some(),
        Test::Absent => value.is_none(),
    }
}

/// Splits at commas outside of parentheses.
fn split_terms(text: &str) -> Vec<&str> {
    let (mut terms, mut start, mut depth) = (Vec::new(), 0, 0_i32);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                terms.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(text[start..].trim());
    terms
}

fn parse_label_term(term: &str) -> Option<(String, Test)> {
    let pair = |key: &str, value: &str| {
        let ok = is_label_key(key.trim()) && is_label_value(value.trim());
        ok.then(|| (key.trim().to_string(), vec![value.trim().to_string()]))
    };
    if let Some((key, value)) = term.split_once("!=") {
        return pair(key, value).map(|(key, values)| (key, Test::NotIn(values)));
    }
    if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        return pair(key, value).map(|(key, values)| (key, Test::In(values)));
    }
    if let Some(key) = term.strip_prefix('!') {
        return is_label_key(key.trim()).then(|| (key.trim().to_string(), Test::Absent));
    }
    let Some((key, rest)) = term.split_once(char::is_whitespace) else {
        return is_label_key(term).then(|| (term.to_string(), Test::Exists));
    };
    let rest = rest.trim();
    let (negated, list) = match rest.strip_prefix("notin") {
        Some(list) => (true, list),
        None => (false, rest.strip_prefix("in")?),
    };
    let inner = list.trim().strip_prefix('(')?.strip_suffix(')')?;
    let values: Vec<String> = inner.split(',').map(|value| value.trim().to_string()).collect();
    let ok = is_label_key(key) && values.iter().all(|value| is_label_value(value));
    let test = if negated { Test::NotIn(values) } else { Test::In(values) };
    ok.then(|| (key.to_string(), test))
}

fn is_label_key(key: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    !key.is_empty() && key.chars().all(letter)
}

fn is_label_value(value: &str) -> bool {
    value.len() <= 63 && value.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// A field selector: equalities and inequalities over a few fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector(Vec<(String, Equality, String)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Equality {
    Equal,
    Unequal,
}

impl FieldSelector {
    /// Reads the text form, such as `metadata.name=a,status.phase!=Running`.
    pub(crate) fn parse(text: &str, kind: &Kind) -> Result<Self, ApiError> {
        let mut terms = Vec::new();
        for term in text.split(',').map(str::trim).filter(|term| !term.is_empty()) {
            let split = match term.split_once("!=") {
                Some((field, value)) => Some((field, Equality::Unequal, value)),
                None => term
                    .split_once("==")
                    .or_else(|| term.split_once('='))
                    .map(|(field, value)| (field, Equality::Equal, value)),
            };
            let Some((field, equality, value)) = split else {
                let why = format!("invalid field selector {term:?}: write field=value");
                return Err(ApiError::bad_request(why));
            };
            let field = stored_field(kind, field.trim()).ok_or_else(|| {
                ApiError::bad_request(format!(
                    "Unable to find \"{}\" that match label selector \"\", field selector \
                     \"{text}\": field label not supported: {field}",
                    kind.qualified_plural()
                ))
            })?;
            terms.push((field, equality, value.trim().to_string()));
        }
        Ok(Self(terms))
    }

    /// Whether an object's fields fit.
    pub fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|(field, equality, wanted)| {
            let same = read_field(object, field) == *wanted;
            same == (*equality == Equality::Equal)
        })
    }

    /// The name the selector pins, if it does, so that a list need not look at everything.
    pub(crate) fn pinned_name(&self) -> Option<&str> {
        let pin = |(field, equality, _): &&(String, Equality, String)| {
            field == "metadata.name" && *equality == Equality::Equal
        };
        self.0.iter().find(pin).map(|(_, _, name)| name.as_str())
    }
}

fn read_field(object: &Value, field: &str) -> String {
    let found = field.split('.').try_fold(object, |value, step| value.get(step));
    match found {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(value)) => value.to_string(),
        Some(Value::Number(value)) => value.to_string(),
        _ if field == "spec.unschedulable" || field == "spec.hostNetwork" => "false".to_string(),
        _ if field == "source" => source_of(object).to_string(),
        _ => String::new(),
    }
}

/// The source of an Event is its component, or its reporting component.
fn source_of(event: &Value) -> &str {
    match text(event, "/source/component") {
        "" => text(event, "/reportingComponent"),
        component => component,
    }
}

/// The field in the stored form, if the kind can be selected by it.
fn stored_field(kind: &Kind, field: &str) -> Option<String> {
    let own: &[&str] = match kind.plural {
        "pods" => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
        "nodes" => &["spec.unschedulable"],
        "namespaces" => &["status.phase"],
        "secrets" => &["type"],
        "services" => &["spec.clusterIP", "spec.type"],
        "events" => return event_field(kind, field),
        _ => &[],
    };
    let general = ["metadata.name", "metadata.namespace"];
    (general.contains(&field) || own.contains(&field)).then(|| field.to_string())
}

fn event_field(kind: &Kind, field: &str) -> Option<String> {
    let stored = match (kind.group, field) {
        ("events.k8s.io", "reportingController") => "reportingComponent".to_string(),
        (_, "reportingComponent" | "reason" | "type" | "source") => field.to_string(),
        (_, "metadata.name" | "metadata.namespace") => field.to_string(),
        ("events.k8s.io", _) if field.starts_with("regarding.") => {
            field.replacen("regarding.", "involvedObject.", 1)
        }
        (_, _) if field.starts_with("involvedObject.") => field.to_string(),
        _ => return None,
    };
    Some(stored)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::by_plural;
    use serde_json::json;

    #[test]
    fn label_selectors_match() {
        let object = json!({"metadata": {"labels": {"app": "web", "tier": "a"}}});
        for (text, want) in [
            ("", true),
            ("app=web", true),
            ("app==web,tier!=b", true),
            ("app!=web", false),
            ("tier in (a, b)", true),
            ("tier notin (a,b)", false),
            ("absent notin (a)", true),
            ("app,!absent", true),
            ("!app", false),
            ("app in (x),tier in (a)", false),
        ] {
            assert_eq!(LabelSelector::parse(text).unwrap().matches(&object), want, "{text}");
        }
        assert_eq!(LabelSelector::parse("app like web").unwrap_err().code(), 400);
    }

    #[test]
    fn field_selectors_match() {
        let pods = by_plural("pods").unwrap();
        let pod = json!({"metadata": {"name": "a"}, "spec": {"nodeName": "n"},
            "status": {"phase": "Running"}});
        let select = |text: &str| FieldSelector::parse(text, pods).unwrap().matches(&pod);
        assert!(select("spec.nodeName=n,status.phase!=Failed"));
        assert!(!select("spec.nodeName="));
        assert!(select("spec.hostNetwork=false"));
        assert_eq!(FieldSelector::parse("spec.dnsPolicy=x", pods).unwrap_err().code(), 400);
        let pinned = FieldSelector::parse("metadata.name=a", pods).unwrap();
        assert_eq!(pinned.pinned_name(), Some("a"));
    }
}
