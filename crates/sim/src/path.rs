//! What the path of a request to Azure tells: what it is about, and against which limits it counts.

use arm::{Method, Request, Target};

/// The path of a request without host and query.
pub(crate) fn bare_path(request: &Request) -> &str {
    let (Target::Path(path) | Target::Url(path)) = &request.target;
    path.split('?').next().unwrap_or("")
}

/// What a call uses: Resource Manager counts reads, writes and deletes of a subscription apart,
/// each provider counts reads and the rest. A provider's own description is Resource Manager's.
pub(crate) fn quotas(method: Method, path: &str) -> [String; 2] {
    let part = |name: &str, at: usize| {
        let mut parts = path.split('/').skip_while(|part| *part != name);
        parts.nth(at).unwrap_or_default().to_owned()
    };
    let subscription = part("subscriptions", 1);
    let provider_name =
        if part("providers", 2).is_empty() { String::new() } else { part("providers", 1) };
    let (manager, provider) = match method {
        Method::Get => ("reads", "reads"),
        Method::Delete => ("deletes", "writes"),
        _ => ("writes", "writes"),
    };
    [
        format!("{manager} of {subscription}"),
        format!("{provider} of {provider_name} of {subscription}"),
    ]
}

/// What a request uses.
pub(crate) fn limits_of(request: &Request) -> [String; 2] {
    quotas(request.method, &target_of(request))
}

/// The path of a request, lower case.
pub(crate) fn target_of(request: &Request) -> String {
    let path = bare_path(request);
    path.find("/subscriptions/").map_or(path, |at| &path[at..]).to_lowercase()
}
