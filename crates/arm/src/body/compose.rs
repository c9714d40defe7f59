//! Writing JSON in Azure's shapes.

use super::fields::Object;
use model::ResourceId;
use model::azure::{RestFields, Sku, Tags};
use serde_json::{Value, json};
use std::sync::Arc;

/// The start of every resource's body.
pub(super) fn head(id: &ResourceId) -> Object {
    let mut top = Object::new();
    put(&mut top, "id", id.as_str());
    put(&mut top, "name", id.name());
    top
}

pub(super) fn put(fields: &mut Object, key: &str, value: impl Into<Value>) {
    fields.insert(key.to_owned(), value.into());
}

/// Writes a field that is there.
pub(super) fn put_some(fields: &mut Object, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        put(fields, key, value);
    }
}

/// Writes a list that is not empty.
pub(super) fn put_list(fields: &mut Object, key: &str, items: Vec<Value>) {
    if !items.is_empty() {
        put(fields, key, items);
    }
}

pub(super) fn put_location(top: &mut Object, location: &str, edge_zone: Option<&Arc<str>>) {
    if !location.is_empty() {
        put(top, "location", location);
    }
    let zone = edge_zone.map(|name| json!({ "name": &**name, "type": "EdgeZone" }));
    put_some(top, "extendedLocation", zone);
}

pub(super) fn put_tags(top: &mut Object, tags: Option<&Tags>, rest: &mut RestFields) {
    let strange = rest.top.shift_remove("tags");
    let Some(tags) = tags else {
        return put_some(top, "tags", strange);
    };
    let mut fields: Object = tags.iter().map(|(k, v)| (k.to_string(), Value::from(&**v))).collect();
    if let Some(Value::Object(strange)) = strange {
        fields.extend(strange);
    }
    put(top, "tags", fields);
}

/// Basic by itself is written as no SKU at all, which means the same.
pub(super) fn put_sku(top: &mut Object, sku: Sku, rest: &mut RestFields) {
    let mut fields = match rest.top.shift_remove("sku") {
        Some(Value::Object(fields)) => fields,
        Some(strange) => return put(top, "sku", strange),
        None if sku == Sku::Basic => return,
        None => Object::new(),
    };
    fields.entry("name").or_insert_with(|| sku.name().into());
    put(top, "sku", fields);
}

pub(super) fn texts<'a>(items: impl IntoIterator<Item = &'a Arc<str>>) -> Vec<Value> {
    items.into_iter().map(|t| Value::from(&**t)).collect()
}

pub(super) fn reference(id: &ResourceId) -> Value {
    json!({ "id": id.as_str() })
}

pub(super) fn references<'a>(ids: impl IntoIterator<Item = &'a ResourceId>) -> Vec<Value> {
    ids.into_iter().map(reference).collect()
}

/// A child: its name, the typed fields, the rest.
pub(super) fn child(name: &str, mut top: Object, properties: Object, rest: RestFields) -> Value {
    if !name.is_empty() {
        put(&mut top, "name", name);
    }
    whole(top, properties, rest)
}

/// The typed fields and the rest together; the rest wins, because what is in it as well could
/// not be read.
pub(super) fn whole(mut top: Object, mut properties: Object, rest: RestFields) -> Value {
    top.extend(rest.top);
    properties.extend(rest.properties);
    put(&mut top, "properties", properties);
    Value::Object(top)
}
