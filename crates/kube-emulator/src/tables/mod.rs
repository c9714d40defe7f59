//! The forms in which clients ask for objects: plain, metadata only, or rows of a table.

mod columns;

use crate::json::at;
use crate::kinds::Kind;
use crate::protobuf::MEDIA;
use crate::status::ApiError;
use columns::{Column, columns, row};
use serde_json::{Value, json};
use std::sync::Arc;

/// How a client wants objects shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As they are.
    Plain,
    /// As rows, each with the object's metadata.
    Table,
    /// Metadata only.
    Metadata,
}

/// How a response is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Coding {
    /// As JSON.
    #[default]
    Json,
    /// As protobuf, where what is answered has that form.
    Protobuf,
}

/// Whether a table says what its columns are; in a watch only the first one does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableHead {
    /// With the columns.
    Shown,
    /// Rows only.
    Left,
}

impl Form {
    /// Reads an `Accept` header: the first media type this API can answer with. A table has no
    /// protobuf form.
    pub(crate) fn from_accept(accept: &str) -> Result<(Self, Coding), ApiError> {
        if accept.trim().is_empty() {
            return Ok((Self::Plain, Coding::Json));
        }
        for media in accept.split(',') {
            let mut parts = media.split(';').map(str::trim);
            let name = parts.next().unwrap_or("");
            let known = ["application/json", "application/*", "*/*", "text/plain", "text/*"];
            let openapi = name.starts_with("application/com.github.proto-openapi");
            let coding = match name {
                MEDIA => Coding::Protobuf,
                name if known.contains(&name) || openapi => Coding::Json,
                _ => continue,
            };
            let options: Vec<&str> = parts.collect();
            let option =
                |key: &str| options.iter().find_map(|one| one.strip_prefix(key)?.strip_prefix('='));
            match (option("as"), option("g"), option("v")) {
                (None, _, _) => return Ok((Self::Plain, coding)),
                (Some("Table"), Some("meta.k8s.io"), Some("v1")) if coding == Coding::Json => {
                    return Ok((Self::Table, coding));
                }
                (
                    Some("PartialObjectMetadata" | "PartialObjectMetadataList"),
                    Some("meta.k8s.io"),
                    Some("v1"),
                ) => return Ok((Self::Metadata, coding)),
                _ => {}
            }
        }
        let message = format!(
            "only the following media types are accepted: application/json, {MEDIA} \
             (the request accepts {accept:?})"
        );
        Err(ApiError::new(406, "NotAcceptable", message))
    }
}

fn metadata_only(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": at(object, "/metadata")})
}

fn table(
    kind: &Kind,
    metadata: Value,
    items: &[Arc<Value>],
    now_ms: u64,
    head: TableHead,
) -> Value {
    let rows: Vec<Value> = items
        .iter()
        .map(|item| json!({"cells": row(kind, item, now_ms), "object": metadata_only(item)}))
        .collect();
    let shown: Vec<Value> = match head {
        TableHead::Shown => columns(kind).iter().map(Column::json).collect(),
        TableHead::Left => Vec::new(),
    };
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
        "columnDefinitions": shown, "rows": rows})
}

/// One object in a form.
pub(crate) fn show(
    form: Form,
    kind: &Kind,
    object: &Arc<Value>,
    now_ms: u64,
    head: TableHead,
) -> Value {
    match form {
        Form::Plain => object.as_ref().clone(),
        Form::Metadata => metadata_only(object),
        Form::Table => {
            let version = at(object, "/metadata/resourceVersion");
            let items = std::slice::from_ref(object);
            table(kind, json!({"resourceVersion": version}), items, now_ms, head)
        }
    }
}

/// A list in a form other than plain.
pub(crate) fn show_list(
    form: Form,
    kind: &Kind,
    metadata: &Value,
    items: &[Arc<Value>],
    now_ms: u64,
) -> Value {
    match form {
        Form::Table => table(kind, metadata.clone(), items, now_ms, TableHead::Shown),
        _ => {
            let items: Vec<Value> = items.iter().map(|item| metadata_only(item)).collect();
            json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata, "items": items})
        }
    }
}

#[cfg(test)]
mod tests;
