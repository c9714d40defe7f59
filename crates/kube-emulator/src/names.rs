//! Which names objects may have.

use crate::kinds::Kind;
use crate::status::FieldFault;
use serde_json::json;

fn is_lower(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit()
}

/// A DNS label: lower case letters, digits and inner hyphens, at most 63.
pub(crate) fn is_dns_label(name: &str) -> bool {
    let inner = |c: char| is_lower(c) || c == '-';
    (1..=63).contains(&name.len())
        && name.chars().all(inner)
        && name.starts_with(is_lower)
        && name.ends_with(is_lower)
}

fn is_dns_subdomain(name: &str) -> bool {
    let label = |part: &str| {
        !part.is_empty()
            && part.chars().all(|c| is_lower(c) || c == '-')
            && part.starts_with(is_lower)
            && part.ends_with(is_lower)
    };
    (1..=253).contains(&name.len()) && name.split('.').all(label)
}

/// A name a container port may have.
pub(crate) fn is_port_name(name: &str) -> bool {
    let inner = |c: char| is_lower(c) || c == '-';
    (1..=15).contains(&name.len())
        && name.chars().all(inner)
        && name.chars().any(|c| c.is_ascii_lowercase())
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

/// Names of roles may hold nearly everything.
fn is_path_segment(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '%'])
}

/// What is wrong with an object's name.
pub(crate) fn name_faults(kind: &Kind, name: &str) -> Vec<FieldFault> {
    let fault = |why: &str| vec![FieldFault::invalid("metadata.name", &json!(name), why)];
    match kind.plural {
        _ if name.is_empty() => {
            vec![FieldFault::required("metadata.name", "name or generateName is required")]
        }
        "services" if !is_dns_label(name) || name.starts_with(|c: char| c.is_ascii_digit()) => {
            fault(
                "a DNS-1035 label must consist of lower case alphanumeric characters or '-', \
                 start with an alphabetic character, and end with an alphanumeric character \
                 (e.g. 'my-name',  or 'abc-123', regex used for validation is \
                 '[a-z]([-a-z0-9]*[a-z0-9])?')",
            )
        }
        "namespaces" if !is_dns_label(name) => fault(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or \
             '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or \
             '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
        ),
        "roles" | "rolebindings" | "clusterroles" | "clusterrolebindings" => {
            match is_path_segment(name) {
                true => Vec::new(),
                false => fault("may not be '.' or '..' and may not contain '/' or '%'"),
            }
        }
        "services" | "namespaces" => Vec::new(),
        _ if !is_dns_subdomain(name) => fault(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '-' or '.', and must start and end with an alphanumeric character (e.g. \
             'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        ),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::by_plural;

    #[test]
    fn names_are_checked_by_kind() {
        for (plural, name, good) in [
            ("services", "web-1", true),
            ("services", "1web", false),
            ("services", "a.b", false),
            ("namespaces", "1web", true),
            ("namespaces", "A", false),
            ("pods", "a.b-c", true),
            ("pods", "a..b", false),
            ("pods", "a_b", false),
            ("clusterroles", "system:node", true),
            ("clusterroles", "a/b", false),
            ("pods", "", false),
        ] {
            let kind = by_plural(plural).unwrap();
            assert_eq!(name_faults(kind, name).is_empty(), good, "{plural} {name:?}");
        }
    }
}
