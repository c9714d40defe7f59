//! Where in a YAML or JSON text each key stands.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;
use std::fmt;

/// A place in a text, both numbers from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Line.
    pub line: u64,
    /// Column.
    pub column: u64,
}

/// A value, with the places of its keys.
#[derive(Clone, Debug, PartialEq)]
pub enum Located {
    /// Keys with their places and values.
    Map(Vec<(String, Place, Located)>),
    /// Items.
    List(Vec<Located>),
    /// Anything else; the text, where it is one.
    Leaf(Option<String>),
}

impl Located {
    /// The place of the last key of a path; keys are compared without regard to letter case where
    /// none is equal.
    #[must_use]
    pub fn place(&self, path: &[&str]) -> Option<Place> {
        let (first, rest) = path.split_first()?;
        let Self::Map(entries) = self else { return None };
        let found = entries
            .iter()
            .find(|(key, ..)| key == first)
            .or_else(|| entries.iter().find(|(key, ..)| key.eq_ignore_ascii_case(first)));
        let (_, place, value) = found?;
        if rest.is_empty() { Some(*place) } else { value.place(rest) }
    }

    /// The place of the first key.
    #[must_use]
    pub fn start(&self) -> Option<Place> {
        match self {
            Self::Map(entries) => entries.first().map(|(_, place, _)| *place),
            Self::List(_) | Self::Leaf(_) => None,
        }
    }

    fn kind(&self) -> &str {
        let Self::Map(entries) = self else { return "" };
        match entries.iter().find(|(key, ..)| key == "kind") {
            Some((_, _, Self::Leaf(Some(kind)))) => kind,
            _ => "",
        }
    }

    fn flatten(self, found: &mut Vec<Self>) {
        let is_list = self.kind().ends_with("List");
        match self {
            Self::Map(entries) if is_list => {
                let items = entries.into_iter().find(|(key, ..)| key == "items");
                if let Some((_, _, Self::List(items))) = items {
                    items.into_iter().for_each(|item| item.flatten(found));
                }
            }
            Self::Map(_) => found.push(self),
            Self::List(_) | Self::Leaf(_) => {}
        }
    }
}

/// The objects of a text, in the order of [`crate::manifest::read`]; none where the text has keys
/// that are no texts.
#[must_use]
pub fn objects(text: &str) -> Vec<Located> {
    let documents: Vec<Located> = serde_saphyr::from_multiple(text).unwrap_or_default();
    let mut found = Vec::new();
    documents.into_iter().for_each(|document| document.flatten(&mut found));
    found
}

impl<'de> Deserialize<'de> for Located {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reading)
    }
}

struct Reading;

impl<'de> Visitor<'de> for Reading {
    type Value = Located;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Located, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, value)) = map.next_entry::<Spanned<String>, Located>()? {
            let (line, column) = (key.referenced.line(), key.referenced.column());
            entries.push((key.value, Place { line, column }, value));
        }
        Ok(Located::Map(entries))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Located, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Located::List(items))
    }

    fn visit_str<E>(self, text: &str) -> Result<Located, E> {
        Ok(Located::Leaf(Some(text.to_owned())))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Located, E> {
        Ok(Located::Leaf(None))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Located, E> {
        Ok(Located::Leaf(None))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Located, E> {
        Ok(Located::Leaf(None))
    }

    fn visit_i128<E>(self, _: i128) -> Result<Located, E> {
        Ok(Located::Leaf(None))
    }

    fn visit_u128<E>(self, _: u128) -> Result<Located, E> {
        Ok(Located::Leaf(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Located, E> {
        Ok(Located::Leaf(None))
    }

    fn visit_unit<E>(self) -> Result<Located, E> {
        Ok(Located::Leaf(None))
    }

    fn visit_none<E>(self) -> Result<Located, E> {
        Ok(Located::Leaf(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u64, column: u64) -> Option<Place> {
        Some(Place { line, column })
    }

    #[test]
    fn keys_have_their_places_in_yaml_and_json() {
        let text = "# first\nkind: Service\nmetadata:\n  name: web\n  annotations:\n    \
                    a/b: \"3\"\n---\n---\nkind: ServiceList\nitems:\n- kind: Service\n  spec: \
                    {ports: [{port: 80}]}\n";
        let found = objects(text);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].start(), at(2, 1));
        assert_eq!(found[0].place(&["metadata", "name"]), at(4, 3));
        assert_eq!(found[0].place(&["metadata", "annotations", "a/b"]), at(6, 5));
        assert_eq!(found[0].place(&["metadata", "annotations", "A/b"]), at(6, 5));
        assert_eq!(found[0].place(&["metadata", "labels"]), None);
        assert_eq!(found[1].place(&["spec", "ports"]), at(12, 10));
        let json = "{\n \"kind\": \"Service\",\n \"spec\": {\"ports\": []}\n}";
        assert_eq!(objects(json)[0].place(&["spec", "ports"]), at(3, 11));
    }
}
