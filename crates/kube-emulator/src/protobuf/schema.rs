//! Which messages there are, and what their fields hold: the files in `schema/`.
//!
//! A line without indentation names a message, the indented lines below it are its fields: number,
//! JSON name, type. Numbers and types are those of Kubernetes' published `generated.proto` files;
//! JSON names, and whether a zero is kept, those of the `types.go` beside them.
//!
//! | written | means |
//! | --- | --- |
//! | `.` as the name | the members stand in the parent's JSON object (an inlined struct) |
//! | `[]T` | repeated |
//! | `T?` | a pointer in Go: zero and "not set" are two things |
//! | `T!` | no `omitempty` in Go: JSON shows it when it is zero, too |
//! | `map`, `map bytes`, … | a map from text to text, bytes, quantities or times |
//! | `strings` | a message that is nothing but a list of texts (`Verbs`) |
//! | `json` | a message that is nothing but JSON text (`FieldsV1`) |

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// What one value of a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Text,
    /// 32 or 64 bits with a sign: both are varints.
    Int,
    Bool,
    Bytes,
    /// Whole seconds: Kubernetes keeps no fractions in a `Time`.
    Time,
    MicroTime,
    Quantity,
    IntOrText,
    Json,
    Texts,
    Map(Entry),
    /// A message of this name.
    Message(&'static str),
}

/// What the values of a map are; its keys are texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    Text,
    Bytes,
    Quantity,
    Time,
}

impl Entry {
    /// What one value is.
    pub(super) fn shape(self) -> Shape {
        match self {
            Self::Text => Shape::Text,
            Self::Bytes => Shape::Bytes,
            Self::Quantity => Shape::Quantity,
            Self::Time => Shape::Time,
        }
    }
}

/// How often a field is there, and what its zero means in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// A zero is not set.
    Plain,
    /// A zero that is on the wire is a value.
    Kept,
    /// A list.
    Repeated,
}

/// One field of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) number: u64,
    /// The JSON name; `None` if the message's members stand in the parent.
    pub(super) name: Option<&'static str>,
    pub(super) shape: Shape,
    pub(super) presence: Presence,
}

type Messages = BTreeMap<&'static str, Vec<Field>>;

static MESSAGES: LazyLock<Messages> = LazyLock::new(|| {
    let mut messages = Messages::new();
    for text in FILES {
        read(text, &mut messages);
    }
    messages
});

const FILES: [&str; 3] = [
    include_str!("schema/meta.txt"),
    include_str!("schema/core.txt"),
    include_str!("schema/groups.txt"),
];

/// The fields of a message, if it is known.
pub(super) fn message(name: &str) -> Option<&'static [Field]> {
    MESSAGES.get(name).map(Vec::as_slice)
}

/// The message of a kind, if it is known. Two kinds share a name.
pub(super) fn of_kind(api_version: &str, kind: &str) -> Option<&'static str> {
    let name = match (api_version, kind) {
        ("events.k8s.io/v1", "Event") => "events.Event",
        (_, kind) => kind,
    };
    MESSAGES.get_key_value(name).map(|(name, _)| *name)
}

fn read(text: &'static str, messages: &mut Messages) {
    let mut fields: Option<&mut Vec<Field>> = None;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix(' ') {
            None => fields = Some(messages.entry(line).or_default()),
            Some(line) => {
                let field = field(line).expect("the schema's lines are tested");
                fields.as_mut().expect("a field stands below a message").push(field);
            }
        }
    }
}

fn field(line: &'static str) -> Option<Field> {
    let mut words = line.splitn(3, ' ');
    let number = words.next()?.parse().ok()?;
    let name = words.next().filter(|name| *name != ".");
    let written = words.next()?;
    let (written, presence) = match (written.strip_prefix("[]"), written.strip_suffix(['?', '!'])) {
        (Some(item), _) => (item, Presence::Repeated),
        (None, Some(kept)) => (kept, Presence::Kept),
        (None, None) => (written, Presence::Plain),
    };
    let shape = match written {
        "string" => Shape::Text,
        "int" => Shape::Int,
        "bool" => Shape::Bool,
        "bytes" => Shape::Bytes,
        "time" => Shape::Time,
        "microTime" => Shape::MicroTime,
        "quantity" => Shape::Quantity,
        "intOrString" => Shape::IntOrText,
        "json" => Shape::Json,
        "strings" => Shape::Texts,
        "map" => Shape::Map(Entry::Text),
        "map bytes" => Shape::Map(Entry::Bytes),
        "map quantity" => Shape::Map(Entry::Quantity),
        "map time" => Shape::Map(Entry::Time),
        name => Shape::Message(name),
    };
    Some(Field { number, name, shape, presence })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::KINDS;

    #[test]
    fn every_kind_that_is_served_and_every_message_in_one_is_known() {
        for kind in KINDS {
            assert!(of_kind(&kind.api_version(), kind.kind).is_some(), "{}", kind.kind);
        }
        for (name, fields) in MESSAGES.iter() {
            for field in fields {
                if let Shape::Message(inner) = field.shape {
                    assert!(message(inner).is_some(), "{name} has a {inner}");
                }
            }
        }
    }

    #[test]
    fn no_message_has_a_number_or_a_name_twice() {
        for (name, fields) in MESSAGES.iter() {
            for (at, one) in fields.iter().enumerate() {
                let again = fields[at + 1..].iter().find(|other| {
                    other.number == one.number || (one.name.is_some() && other.name == one.name)
                });
                assert_eq!(again, None, "{name}");
            }
        }
    }

    #[test]
    fn the_table_reads_as_it_is_written() {
        let replicas = message("DeploymentSpec").unwrap().first().unwrap();
        let want = Field {
            number: 1,
            name: Some("replicas"),
            shape: Shape::Int,
            presence: Presence::Kept,
        };
        assert_eq!(*replicas, want);
        let inlined = message("Volume").unwrap().iter().find(|field| field.name.is_none());
        assert_eq!(inlined.unwrap().shape, Shape::Message("VolumeSource"));
    }
}
