//! The OpenAPI documents: enough for clients to see that `dryRun` and `fieldValidation` are
//! understood. They hold no schemas; clients then use the ones they carry, or none.

use crate::kinds::{KINDS, Kind, groups};
use crate::request::{Body, Request, Response};
use crate::status::ApiError;
use serde_json::{Map, Value, json};

fn path_of(kind: &Kind) -> String {
    let root = match kind.group {
        "" => format!("/api/{}", kind.version),
        group => format!("/apis/{group}/{}", kind.version),
    };
    match kind.is_namespaced() {
        true => format!("{root}/namespaces/{{namespace}}/{}/{{name}}", kind.plural),
        false => format!("{root}/{}/{{name}}", kind.plural),
    }
}

fn kind_mark(kind: &Kind) -> Value {
    json!({"group": kind.group, "version": kind.version, "kind": kind.kind})
}

const PARAMETERS: [&str; 4] = ["dryRun", "fieldManager", "fieldValidation", "force"];

/// `/openapi/v3`: where the documents are.
pub(crate) fn index() -> Value {
    let mut paths = Map::new();
    let mut add = |path: String| {
        let url = json!({"serverRelativeURL": format!("/openapi/v3/{path}?hash=1")});
        paths.insert(path, url);
    };
    add("api/v1".to_string());
    for (group, version) in groups() {
        add(format!("apis/{group}/{version}"));
    }
    json!({"paths": paths})
}

/// `/openapi/v3/...`: the paths of one group and version.
pub(crate) fn version_three(group: &str, version: &str) -> Result<Value, ApiError> {
    let parameters: Vec<Value> = PARAMETERS
        .iter()
        .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string"}}))
        .collect();
    let mut paths = Map::new();
    for kind in KINDS.iter().filter(|kind| (kind.group, kind.version) == (group, version)) {
        let content = json!({
            "application/json-patch+json": {}, "application/merge-patch+json": {},
            "application/strategic-merge-patch+json": {}, "application/apply-patch+yaml": {},
        });
        let patch = json!({"parameters": parameters, "requestBody": {"content": content},
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-action": "patch", "x-kubernetes-group-version-kind": kind_mark(kind)});
        paths.insert(path_of(kind), json!({"patch": patch}));
    }
    if paths.is_empty() {
        return Err(ApiError::unknown_path());
    }
    Ok(json!({"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "v1.33.0"},
        "paths": paths, "components": {"schemas": {}}}))
}

/// `/openapi/v2`, as JSON or in the protobuf form that kubectl asks for.
pub(crate) fn version_two(request: &Request) -> Response {
    if request.accept.contains("proto-openapi") {
        let bytes = Body::Bytes(document_message());
        // Clients ask for `v2@v1.0`, but an `@` is no part of a media type, and they fail on it.
        let content_type = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
        return Response { content_type, ..Response::new(200, bytes) };
    }
    let parameters: Vec<Value> = PARAMETERS
        .iter()
        .map(|name| json!({"name": name, "in": "query", "type": "string"}))
        .collect();
    let mut paths = Map::new();
    for kind in KINDS {
        let patch = json!({"parameters": parameters, "responses": {"200": {"description": "OK"}},
            "x-kubernetes-group-version-kind": kind_mark(kind)});
        paths.insert(path_of(kind), json!({"patch": patch}));
    }
    Response::document(json!({"swagger": "2.0", "info": {"title": "Kubernetes",
        "version": "v1.33.0"}, "paths": paths, "definitions": {}}))
}

/// Writes one length-delimited protobuf field.
fn field(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    varint(u64::from(number << 3 | 2), &mut out);
    varint(bytes.len() as u64, &mut out);
    out.extend_from_slice(bytes);
    out
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value as u8 & 0x7f) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A named value: name in field 1, value in field 2.
fn named(name: &str, value: &[u8]) -> Vec<u8> {
    [field(1, name.as_bytes()), field(2, value)].concat()
}

/// The OpenAPI v2 `Document` message: swagger 1, info 2, paths 8.
fn document_message() -> Vec<u8> {
    let info = [field(1, b"Kubernetes"), field(2, b"v1.33.0")].concat();
    // Paths: path 2 (a named PathItem); PathItem: patch 8 (an Operation).
    let paths: Vec<u8> = KINDS
        .iter()
        .flat_map(|kind| {
            let item = field(8, &operation_message(kind));
            field(2, &named(&path_of(kind), &item))
        })
        .collect();
    [field(1, b"2.0"), field(2, &info), field(8, &paths)].concat()
}

/// An `Operation`: parameters 8, vendor extension 13.
fn operation_message(kind: &Kind) -> Vec<u8> {
    let mut out = Vec::new();
    for name in PARAMETERS {
        // ParametersItem.parameter 1, Parameter.non_body_parameter 2,
        // NonBodyParameter.query_parameter_sub_schema 3: in 2, name 4, type 6.
        let schema = [field(2, b"query"), field(4, name.as_bytes()), field(6, b"string")].concat();
        out.extend(field(8, &field(1, &field(2, &field(3, &schema)))));
    }
    // The extension's value is an Any; clients read its YAML text in field 2.
    let yaml =
        format!("group: \"{}\"\nkind: {}\nversion: {}\n", kind.group, kind.kind, kind.version);
    let any = field(2, yaml.as_bytes());
    out.extend(field(13, &named("x-kubernetes-group-version-kind", &any)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_varints() {
        let mut out = Vec::new();
        varint(300, &mut out);
        assert_eq!(out, [0xac, 0x02]);
        assert_eq!(field(8, b"ab"), [0x42, 2, b'a', b'b']);
    }

    #[test]
    fn every_kind_says_it_knows_dry_runs() {
        for kind in KINDS {
            let document = version_three(kind.group, kind.version).unwrap();
            let patch = &document["paths"][path_of(kind)]["patch"];
            assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], kind.kind);
            assert_eq!(patch["parameters"][0]["name"], "dryRun");
        }
        assert_eq!(version_three("example.com", "v1").unwrap_err().code(), 404);
    }
}
