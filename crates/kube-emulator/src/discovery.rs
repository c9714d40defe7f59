//! What is served: versions, groups and resources.

use crate::kinds::{KINDS, Kind, StatusPart, groups};
use crate::openapi;
use crate::request::{Body, Method, Request, Response};
use crate::route::Route;
use crate::status::ApiError;
use serde_json::{Value, json};

/// The version the emulator says it is.
const VERSION: (&str, &str, &str) = ("1", "33", "v1.33.0+ballast");

/// Answers a request that is not about objects.
pub(crate) fn answer(route: &Route, request: &Request) -> Result<Response, ApiError> {
    if *route == Route::AccessReview {
        return access_review(request);
    }
    if request.method != Method::Get {
        return Err(ApiError::unknown_path());
    }
    Ok(match route {
        Route::Health => Response::text("ok"),
        Route::Version => Response::document(version()),
        Route::CoreVersions => Response::document(json!({
            "kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [],
        })),
        Route::Groups => {
            let groups: Vec<Value> =
                groups().iter().map(|(name, version)| group(name, version)).collect();
            Response::document(json!({"kind": "APIGroupList", "apiVersion": "v1",
                "groups": groups}))
        }
        Route::Group(name) => {
            let found = groups().into_iter().find(|(group, _)| group == name);
            let (name, version) = found.ok_or_else(ApiError::unknown_path)?;
            let mut document = json!({"kind": "APIGroup", "apiVersion": "v1"});
            merge(&mut document, group(name, version));
            Response::document(document)
        }
        Route::Resources(group, version) => Response::document(resources(group, version)?),
        Route::OpenApiV2 => openapi::version_two(request),
        Route::OpenApiV3Index => Response::document(openapi::index()),
        Route::OpenApiV3(group, version) => {
            Response::document(openapi::version_three(group, version)?)
        }
        Route::AccessReview | Route::Objects(_) => return Err(ApiError::unknown_path()),
    })
}

fn merge(target: &mut Value, more: Value) {
    if let (Some(target), Value::Object(more)) = (target.as_object_mut(), more) {
        target.extend(more);
    }
}

fn version() -> Value {
    let (major, minor, text) = VERSION;
    json!({"major": major, "minor": minor, "gitVersion": text, "gitCommit": "",
        "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "none",
        "compiler": "rustc", "platform": "linux/amd64"})
}

fn group(name: &str, version: &str) -> Value {
    let version = json!({"groupVersion": format!("{name}/{version}"), "version": version});
    json!({"name": name, "versions": [version], "preferredVersion": version})
}

fn resources(group: &str, version: &str) -> Result<Value, ApiError> {
    let rows: Vec<&Kind> =
        KINDS.iter().filter(|kind| (kind.group, kind.version) == (group, version)).collect();
    let first = rows.first().ok_or_else(ApiError::unknown_path)?;
    let list: Vec<Value> = rows.iter().flat_map(|kind| resource(kind)).collect();
    Ok(json!({"kind": "APIResourceList", "apiVersion": "v1",
        "groupVersion": first.api_version(), "resources": list}))
}

fn resource(kind: &Kind) -> Vec<Value> {
    let verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    let mut main = json!({"name": kind.plural, "singularName": kind.singular,
        "namespaced": kind.is_namespaced(), "kind": kind.kind, "verbs": verbs});
    if !kind.short.is_empty() {
        main["shortNames"] = json!(kind.short);
    }
    if matches!(kind.plural, "services" | "pods" | "deployments") {
        main["categories"] = json!(["all"]);
    }
    let mut found = vec![main];
    if kind.status == StatusPart::Separate {
        found.push(json!({"name": format!("{}/status", kind.plural), "singularName": "",
            "namespaced": kind.is_namespaced(), "kind": kind.kind,
            "verbs": ["get", "patch", "update"]}));
    }
    if kind.plural == "namespaces" {
        found.push(json!({"name": "namespaces/finalize", "singularName": "",
            "namespaced": false, "kind": "Namespace", "verbs": ["update"]}));
    }
    found
}

/// Nobody has to log in, so everybody may do everything.
fn access_review(request: &Request) -> Result<Response, ApiError> {
    if request.method != Method::Post {
        return Err(ApiError::unknown_path());
    }
    let mut review = crate::store::body_of(request)?;
    if !review.is_object() {
        return Err(ApiError::bad_request("an access review is an object"));
    }
    review["status"] = json!({"allowed": true});
    Ok(Response::new(201, Body::Document(review)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::parse;

    fn read(path: &str) -> Value {
        answer(&parse(path).unwrap(), &Request::get(path)).unwrap().json()
    }

    #[test]
    fn every_kind_is_discovered() {
        let groups = read("/apis");
        assert_eq!(groups["groups"][0]["preferredVersion"]["groupVersion"], "apps/v1");
        for kind in KINDS {
            let path = match kind.group {
                "" => "/api/v1".to_string(),
                group => format!("/apis/{group}/{}", kind.version),
            };
            let list = read(&path);
            let found = list["resources"].as_array().unwrap().iter();
            assert_eq!(found.filter(|one| one["name"] == kind.plural).count(), 1, "{path}");
        }
        assert_eq!(read("/apis/policy")["preferredVersion"]["version"], "v1");
    }

    #[test]
    fn unknown_groups_are_not_found() {
        let path = "/apis/example.com/v1";
        let error = answer(&parse(path).unwrap(), &Request::get(path)).unwrap_err();
        assert_eq!(error.code(), 404);
    }
}
