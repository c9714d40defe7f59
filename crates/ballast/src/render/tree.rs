//! A JSON value as an indented tree, much like YAML.

use arm::difference::is_empty;
use edge::terminal::one_line;
use serde_json::Value;
use std::fmt::Write as _;

/// Writes a value, each line indented by so many blanks. Empty lists, empty objects and nulls
/// inside objects are left out.
pub fn write(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(object) => {
            // What a thing is called comes first.
            let (names, others): (Vec<_>, Vec<_>) =
                object.iter().filter(|(_, v)| !is_empty(v)).partition(|(key, _)| *key == "name");
            for (key, value) in names.into_iter().chain(others) {
                write_entry(out, key, value, indent);
            }
        }
        Value::Array(list) => {
            for value in list {
                write_item(out, value, indent);
            }
        }
        scalar => line(out, indent, &self::scalar(scalar)),
    }
}

fn write_entry(out: &mut String, key: &str, value: &Value, indent: usize) {
    match value {
        Value::Object(_) => {
            line(out, indent, &format!("{key}:"));
            write(out, value, indent + 2);
        }
        Value::Array(list) if list.iter().all(is_scalar) => {
            let list: Vec<String> = list.iter().map(scalar).collect();
            line(out, indent, &format!("{key}: [{}]", list.join(", ")));
        }
        Value::Array(_) => {
            line(out, indent, &format!("{key}:"));
            write(out, value, indent);
        }
        _ => line(out, indent, &format!("{key}: {}", scalar(value))),
    }
}

fn write_item(out: &mut String, value: &Value, indent: usize) {
    if is_scalar(value) {
        line(out, indent, &format!("- {}", scalar(value)));
        return;
    }
    let mut inner = String::new();
    write(&mut inner, value, indent + 2);
    // The first line carries the dash.
    let first = " ".repeat(indent + 2);
    match inner.strip_prefix(&first) {
        Some(rest) => {
            let _ = write!(out, "{}- {rest}", " ".repeat(indent));
        }
        None => line(out, indent, "- {}"),
    }
}

fn line(out: &mut String, indent: usize, text: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{}{}", " ".repeat(indent), one_line(text));
}

fn is_scalar(value: &Value) -> bool {
    !matches!(value, Value::Object(_) | Value::Array(_))
}

/// A value on one line; texts that could be mistaken for something else are quoted.
#[must_use]
pub fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) if needs_quotes(text) => Value::String(text.clone()).to_string(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn needs_quotes(text: &str) -> bool {
    text.is_empty()
        || text.trim() != text
        || text.chars().any(char::is_control)
        || matches!(text, "true" | "false" | "null" | "*")
        || text.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tree_reads_like_yaml() {
        let value = json!({"name": "a", "zones": ["1", "2"], "tags": {}, "properties": {
            "rules": [{"name": "r", "port": 80}], "id": null}});
        let mut out = String::new();
        write(&mut out, &value, 2);
        let want = "  name: a\n  zones: [\"1\", \"2\"]\n  properties:\n    rules:\n    \
                    - name: r\n      port: 80\n";
        assert_eq!(out, want);
    }
}
