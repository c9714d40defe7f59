//! What a path points at.

use crate::kinds::{self, Kind};
use crate::request::decode_percent;
use crate::status::ApiError;

/// Part of an object that is written apart from the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Everything but `status`.
    Main,
    /// `status` (and labels, annotations and finalizers).
    Status,
    /// The finalizers of a namespace's spec.
    Finalize,
}

/// Objects of one kind, or one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) kind: &'static Kind,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) part: Part,
}

impl Target {
    pub(crate) fn new(kind: &'static Kind, namespace: Option<&str>, name: Option<&str>) -> Self {
        Self {
            kind,
            namespace: namespace.map(str::to_string),
            name: name.map(str::to_string),
            part: Part::Main,
        }
    }

    /// The key in the shelf; cluster kinds lie under the empty namespace.
    pub(crate) fn key(&self) -> (String, String) {
        (self.namespace.clone().unwrap_or_default(), self.name.clone().unwrap_or_default())
    }
}

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    Health,
    Version,
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    /// `/apis/GROUP`
    Group(String),
    /// `/api/v1` or `/apis/GROUP/VERSION`
    Resources(String, String),
    /// `/openapi/v2`
    OpenApiV2,
    /// `/openapi/v3`
    OpenApiV3Index,
    /// `/openapi/v3/api/v1` or `/openapi/v3/apis/GROUP/VERSION`
    OpenApiV3(String, String),
    /// Access reviews: everything is allowed.
    AccessReview,
    Objects(Target),
}

/// Reads a path.
pub(crate) fn parse(path: &str) -> Result<Route, ApiError> {
    let segments: Vec<String> =
        path.split('/').filter(|part| !part.is_empty()).map(decode_percent).collect();
    let words: Vec<&str> = segments.iter().map(String::as_str).collect();
    let text = |word: &&str| (*word).to_string();
    Ok(match words.as_slice() {
        ["healthz" | "livez" | "readyz", ..] => Route::Health,
        ["version"] => Route::Version,
        ["api"] => Route::CoreVersions,
        ["apis"] => Route::Groups,
        ["openapi", "v2"] => Route::OpenApiV2,
        ["openapi", "v3"] => Route::OpenApiV3Index,
        ["openapi", "v3", "api", version] => Route::OpenApiV3(String::new(), text(version)),
        ["openapi", "v3", "apis", group, version] => Route::OpenApiV3(text(group), text(version)),
        ["apis", "authorization.k8s.io", "v1", "selfsubjectaccessreviews"] => Route::AccessReview,
        ["api", version] => Route::Resources(String::new(), text(version)),
        ["apis", group] => Route::Group(text(group)),
        ["apis", group, version] => Route::Resources(text(group), text(version)),
        ["api", version, rest @ ..] => Route::Objects(parse_objects("", version, rest)?),
        ["apis", group, version, rest @ ..] => Route::Objects(parse_objects(group, version, rest)?),
        _ => return Err(ApiError::unknown_path()),
    })
}

fn parse_objects(group: &str, version: &str, rest: &[&str]) -> Result<Target, ApiError> {
    let find = |plural| kinds::by_path(group, version, plural).ok_or_else(ApiError::unknown_path);
    match rest {
        ["namespaces", name, part @ ("status" | "finalize")] => {
            part_of(Target::new(find("namespaces")?, None, Some(name)), part)
        }
        ["namespaces", namespace, plural] => namespaced(find(plural)?, namespace, None),
        ["namespaces", namespace, plural, name] => namespaced(find(plural)?, namespace, Some(name)),
        ["namespaces", namespace, plural, name, part] => {
            part_of(namespaced(find(plural)?, namespace, Some(name))?, part)
        }
        [plural] => Ok(Target::new(find(plural)?, None, None)),
        [plural, name] => cluster(find(plural)?, name),
        [plural, name, part] => part_of(cluster(find(plural)?, name)?, part),
        _ => Err(ApiError::unknown_path()),
    }
}

fn namespaced(
    kind: &'static Kind,
    namespace: &str,
    name: Option<&str>,
) -> Result<Target, ApiError> {
    match kind.is_namespaced() {
        true => Ok(Target::new(kind, Some(namespace), name)),
        false => Err(ApiError::unknown_path()),
    }
}

fn cluster(kind: &'static Kind, name: &str) -> Result<Target, ApiError> {
    match kind.is_namespaced() {
        false => Ok(Target::new(kind, None, Some(name))),
        true => Err(ApiError::unknown_path()),
    }
}

fn part_of(mut target: Target, part: &str) -> Result<Target, ApiError> {
    target.part = match part {
        "status" if target.kind.status == kinds::StatusPart::Separate => Part::Status,
        "finalize" if target.kind.plural == "namespaces" => Part::Finalize,
        _ => return Err(ApiError::unknown_path()),
    };
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(path: &str) -> Target {
        match parse(path) {
            Ok(Route::Objects(target)) => target,
            other => panic!("{path}: {other:?}"),
        }
    }

    #[test]
    fn paths_name_objects() {
        let one = target("/api/v1/namespaces/a/services/b/status");
        assert_eq!((one.kind.kind, one.key()), ("Service", ("a".to_string(), "b".to_string())));
        assert_eq!(one.part, Part::Status);
        assert_eq!(target("/api/v1/namespaces/a").key().1, "a");
        assert_eq!(target("/api/v1/namespaces/a/finalize").part, Part::Finalize);
        assert_eq!(target("/api/v1/services").namespace, None);
        assert_eq!(target("/apis/events.k8s.io/v1/namespaces/a/events").kind.plural, "events");
    }

    #[test]
    fn wrong_paths_are_not_found() {
        for path in [
            "/api/v1/widgets",
            "/api/v1/namespaces/a/nodes",
            "/api/v1/services/b",
            "/api/v1/namespaces/a/configmaps/b/status",
            "/nothing",
        ] {
            assert_eq!(parse(path).unwrap_err().code(), 404, "{path}");
        }
    }
}
