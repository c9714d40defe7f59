//! What only Azure can know stands as "(known after apply)".

use serde_json::Value;
use std::net::IpAddr;

/// What stands for a value that Azure will choose.
pub const UNKNOWN: &str = "(known after apply)";

/// A text, or [`UNKNOWN`] where it is a placeholder address (with or without a prefix length).
#[must_use]
pub fn text(text: &str) -> String {
    let address = text.split_once('/').map_or(text, |(address, _)| address);
    match address.parse::<IpAddr>() {
        Ok(ip) if is_placeholder(ip) => UNKNOWN.to_owned(),
        _ => text.to_owned(),
    }
}

fn is_placeholder(ip: IpAddr) -> bool {
    explain::forecast::is_placeholder(ip) && !ip.is_unspecified() && !ip.is_loopback()
}

/// The same in all of a JSON value; placeholders in a list of which several are unknown stand once
/// each.
#[must_use]
pub fn value(value: &Value) -> Value {
    match value {
        Value::String(s) => Value::String(text(s)),
        Value::Array(list) => list.iter().map(self::value).collect(),
        Value::Object(object) => {
            Value::Object(object.iter().map(|(k, v)| (k.clone(), self::value(v))).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_unknown_and_the_whole_internet_is_not() {
        assert_eq!(text("0.1.0.1"), UNKNOWN);
        assert_eq!(text("0.1.0.1/32"), UNKNOWN);
        for kept in ["0.0.0.0/0", "::/0", "::1", "20.1.0.1", "kubernetes"] {
            assert_eq!(text(kept), kept);
        }
    }
}
