//! Reading JSON that nobody promised anything about.

use model::azure::{EdgeZone, Provisioning, Rest, RestFields, Sku, Tags};
use model::{Etag, Family, ResourceId};
use serde_json::{Map, Value};
use std::net::IpAddr;
use std::sync::Arc;
use thiserror::Error;

pub(super) type Object = Map<String, Value>;

/// What a frontend, a pool or a probe says about those that refer to it.
pub(super) const BACK_REFERENCES: [&str; 4] =
    ["loadBalancingRules", "outboundRules", "inboundNatRules", "inboundNatPools"];

/// Why a body could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("cannot read the body of a {kind}{at}: {reason}", at = at(.id))]
pub struct BodyError {
    /// What it should have been.
    pub kind: &'static str,
    /// The resource's id, where the body has one.
    pub id: Option<ResourceId>,
    /// What is wrong with it.
    pub reason: String,
}

fn at(id: &Option<ResourceId>) -> String {
    id.as_ref().map(|id| format!(" ({id})")).unwrap_or_default()
}

impl BodyError {
    pub(super) fn new(kind: &'static str, reason: impl Into<String>) -> Self {
        Self { kind, id: None, reason: reason.into() }
    }
}

/// The fields that resources of every kind have.
pub(super) struct Envelope {
    pub id: ResourceId,
    pub etag: Option<Etag>,
    pub location: Arc<str>,
    pub edge_zone: Option<EdgeZone>,
    pub tags: Option<Tags>,
    pub provisioning: Provisioning,
    /// The same, as it was written.
    pub state: String,
    pub top: Object,
    pub properties: Object,
}

impl Envelope {
    /// Takes a resource apart; `read_only` are names below `properties` that are dropped.
    pub fn open(kind: &'static str, body: &Value, read_only: &[&str]) -> Result<Self, BodyError> {
        Self::open_around(kind, body, read_only, &[])
    }

    /// The same without the lists of these names, which [`children`] reads where they are: they
    /// are most of a body.
    pub fn open_around(
        kind: &'static str,
        body: &Value,
        read_only: &[&str],
        lists: &[&str],
    ) -> Result<Self, BodyError> {
        let given = fields_of(kind, body)?;
        let typed = ["properties", "etag", "name", "type", "systemData"];
        let mut top = kept(given, |key, _| !typed.contains(&key));
        let id = take(&mut top, "id", id_text);
        let id = id.ok_or_else(|| BodyError::new(kind, "there is no id"))?;
        let etag = given.get("etag").and_then(text).map(|t| Etag::new(&t));
        let wanted = |key: &str, value: &Value| {
            let read_apart = value.is_array() && lists.contains(&key);
            !read_apart && !read_only.contains(&key)
        };
        let mut properties =
            properties(kind, given, wanted).map_err(|e| BodyError { id: Some(id.clone()), ..e })?;
        let location = take(&mut top, "location", text).unwrap_or_else(|| Arc::from(""));
        let edge_zone = take(&mut top, "extendedLocation", edge_zone);
        let tags = take_tags(&mut top);
        let state = take_state(&mut properties);
        let provisioning = provisioning(&state);
        drop_fields(&mut properties, &["provisioningState", "resourceGuid"]);
        Ok(Self { id, etag, location, edge_zone, tags, provisioning, state, top, properties })
    }

    /// What is left.
    pub fn rest(self) -> Rest {
        RestFields { top: self.top, properties: self.properties }.into()
    }
}

/// An element of one of a resource's collections.
pub(super) struct Child {
    pub name: Arc<str>,
    pub top: Object,
    pub properties: Object,
}

impl Child {
    pub fn open(kind: &'static str, body: &Value, read_only: &[&str]) -> Result<Self, BodyError> {
        let given = fields_of(kind, body)?;
        let name = given.get("name").and_then(text);
        let name = name.ok_or_else(|| BodyError::new(kind, "there is no name"))?;
        let typed = ["properties", "name", "id", "etag", "type"];
        let top = kept(given, |key, _| !typed.contains(&key));
        let mut properties = properties(kind, given, |key, _| !read_only.contains(&key))?;
        drop_fields(&mut properties, &["provisioningState"]);
        Ok(Self { name, top, properties })
    }

    pub fn rest(self) -> Rest {
        RestFields { top: self.top, properties: self.properties }.into()
    }
}

/// Reads the elements of a collection of a body; those that are null are left out. A failure names
/// the resource.
pub(super) fn children<T>(
    owner: &ResourceId,
    body: &Value,
    key: &str,
    read: impl Fn(&Value) -> Result<T, BodyError>,
) -> Result<Vec<T>, BodyError> {
    let list = body.get("properties").and_then(|inside| inside.get(key)).and_then(Value::as_array);
    let elements = list.into_iter().flatten().filter(|v| !v.is_null());
    let elements =
        elements.map(|v| read(v).map_err(|e| BodyError { id: Some(owner.clone()), ..e }));
    let mut all = elements.collect::<Result<Vec<T>, BodyError>>()?;
    // Most have one element, and room for four was made: with thousands of resources that is more
    // than all the rest of them.
    all.shrink_to_fit();
    Ok(all)
}

pub(super) fn object(kind: &'static str, body: &Value) -> Result<Object, BodyError> {
    Ok(kept(fields_of(kind, body)?, |_, _| true))
}

fn fields_of<'v>(kind: &'static str, body: &'v Value) -> Result<&'v Object, BodyError> {
    let found = body.as_object();
    found.ok_or_else(|| BodyError::new(kind, format!("it is {} and no object", name_of(body))))
}

/// A copy of the wanted fields, without nulls. They are counted first, because other fields may be
/// large, and most elements have only typed fields: then nothing is allocated.
fn kept(fields: &Object, is_wanted: impl Fn(&str, &Value) -> bool) -> Object {
    let wanted = || fields.iter().filter(|(key, value)| !value.is_null() && is_wanted(key, value));
    let mut kept = Object::with_capacity(wanted().count());
    kept.extend(wanted().map(|(key, value)| (key.clone(), value.clone())));
    kept
}

fn properties(
    kind: &'static str,
    given: &Object,
    is_wanted: impl Fn(&str, &Value) -> bool,
) -> Result<Object, BodyError> {
    match given.get("properties").filter(|found| !found.is_null()) {
        None => Ok(Object::new()),
        Some(found) => fields_of(kind, found)
            .map(|fields| kept(fields, is_wanted))
            .map_err(|e| BodyError { reason: format!("properties: {}", e.reason), ..e }),
    }
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn drop_nulls(fields: &mut Object) {
    if fields.values().any(Value::is_null) {
        fields.retain(|_, v| !v.is_null());
    }
}

pub(super) fn drop_fields(fields: &mut Object, names: &[&str]) {
    for name in names {
        fields.shift_remove(*name);
    }
}

/// Takes a field out where it can be read; a field that cannot stays, to be written as it came.
pub(super) fn take<T>(
    fields: &mut Object,
    key: &str,
    read: impl Fn(&Value) -> Option<T>,
) -> Option<T> {
    let found = read(fields.get(key)?)?;
    fields.shift_remove(key);
    Some(found)
}

/// Takes a list out; anything else stays.
pub(super) fn take_list(fields: &mut Object, key: &str) -> Vec<Value> {
    if !fields.get(key).is_some_and(Value::is_array) {
        return Vec::new();
    }
    match fields.shift_remove(key) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

/// Takes a list of texts out; a list with anything else in it stays whole.
pub(super) fn take_texts<C: FromIterator<Arc<str>>>(fields: &mut Object, key: &str) -> C {
    take(fields, key, |v| v.as_array()?.iter().map(text).collect())
        .unwrap_or_else(|| std::iter::empty().collect())
}

/// Takes a list of references out; a list with anything else in it stays whole.
pub(super) fn take_references<C: FromIterator<ResourceId>>(fields: &mut Object, key: &str) -> C {
    take(fields, key, |v| v.as_array()?.iter().map(reference).collect())
        .unwrap_or_else(|| std::iter::empty().collect())
}

/// Text that is not empty; a number counts as its digits.
pub(super) fn text(value: &Value) -> Option<Arc<str>> {
    match value {
        Value::String(text) if !text.is_empty() => Some(Arc::from(text.as_str())),
        Value::Number(number) => Some(Arc::from(number.to_string())),
        _ => None,
    }
}

/// A number from 0 to 65535, also one in quotes.
pub(super) fn number(value: &Value) -> Option<u16> {
    match value {
        Value::Number(number) => number.as_u64()?.try_into().ok(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// A boolean, also one in quotes.
pub(super) fn flag(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// `{"id": …}`.
pub(super) fn reference(value: &Value) -> Option<ResourceId> {
    id_text(value.get("id")?)
}

/// An id by itself.
pub(super) fn id_text(value: &Value) -> Option<ResourceId> {
    value.as_str().filter(|t| !t.is_empty()).map(ResourceId::new)
}

pub(super) fn address(value: &Value) -> Option<IpAddr> {
    value.as_str()?.trim().parse().ok()
}

/// One of the words, in any letter case.
pub(super) fn word<T: Copy>(words: &[(&str, T)]) -> impl Fn(&Value) -> Option<T> {
    move |value| {
        let text = value.as_str()?;
        words.iter().find(|(w, _)| w.eq_ignore_ascii_case(text)).map(|(_, t)| *t)
    }
}

pub(super) fn family(value: &Value) -> Option<Family> {
    word(&[("IPv4", Family::V4), ("IPv6", Family::V6)])(value)
}

fn edge_zone(value: &Value) -> Option<EdgeZone> {
    let fields = value.as_object()?;
    let kind = fields.get("type").and_then(Value::as_str).unwrap_or("EdgeZone");
    let plain = fields.keys().all(|k| k == "name" || k == "type");
    if !plain || !kind.eq_ignore_ascii_case("EdgeZone") {
        return None;
    }
    text(fields.get("name")?)
}

fn take_tags(top: &mut Object) -> Option<Tags> {
    let Some(Value::Object(fields)) = top.get_mut("tags") else { return None };
    let mut tags = Tags::new();
    fields.retain(|key, value| match value {
        Value::String(value) => {
            tags.insert(Arc::from(key.as_str()), Arc::from(value.as_str()));
            false
        }
        Value::Null => false,
        _ => true,
    });
    if fields.is_empty() {
        top.shift_remove("tags");
    }
    Some(tags)
}

/// The SKU's name; the SKU's other fields stay, and so does a name that is not known.
pub(super) fn take_sku(top: &mut Object, absent: Sku) -> Sku {
    const SKUS: [(&str, Sku); 4] = [
        ("Basic", Sku::Basic),
        ("Standard", Sku::Standard),
        ("StandardV2", Sku::StandardV2),
        ("Service", Sku::Service),
    ];
    let Some(Value::Object(fields)) = top.get_mut("sku") else { return absent };
    drop_nulls(fields);
    let sku = take(fields, "name", word(&SKUS)).unwrap_or(absent);
    if fields.is_empty() && sku != Sku::Basic {
        top.shift_remove("sku");
    }
    sku
}

fn take_state(properties: &mut Object) -> String {
    match properties.shift_remove("provisioningState") {
        Some(Value::String(state)) => state,
        _ => "Succeeded".to_owned(),
    }
}

fn provisioning(state: &str) -> Provisioning {
    if state.eq_ignore_ascii_case("Succeeded") {
        Provisioning::Succeeded
    } else if ["Failed", "Canceled"].iter().any(|s| state.eq_ignore_ascii_case(s)) {
        Provisioning::Failed
    } else {
        Provisioning::Busy
    }
}

/// `properties.provisioningState` of any body; `None` where there is none.
#[must_use]
pub fn read_provisioning(body: &Value) -> Option<Provisioning> {
    body.pointer("/properties/provisioningState").and_then(Value::as_str).map(provisioning)
}
