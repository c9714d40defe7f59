//! Tokens and the description of the cloud: what a client asks before it calls Azure.

use serde_json::{Value, json};

use crate::message::{Answer, Request};
use crate::options::Options;

/// The answer to a sign-in path; `None` if it is not one.
pub(crate) fn answer(options: &Options, request: &Request, path: &str) -> Option<Answer> {
    let base = options.base_url.trim_end_matches('/');
    let lower = path.to_lowercase();
    let body = if lower.starts_with("/metadata/endpoints") {
        clouds(base)
    } else if lower.ends_with("/openid-configuration") {
        let tenant = path.split('/').nth(1).unwrap_or("common");
        openid(base, tenant)
    } else if lower.ends_with("/discovery/instance") {
        json!({"tenant_discovery_endpoint":
            format!("{base}/common/v2.0/.well-known/openid-configuration"), "metadata": []})
    } else if lower.ends_with("/token") || lower.starts_with("/metadata/identity/oauth2/token") {
        token(request, base)
    } else {
        return None;
    };
    Some(Answer::new(200, Some(body)))
}

fn clouds(base: &str) -> Value {
    let names = ["AzureCloud", "AzurePublicCloud", "AzureStackCloud"];
    let clouds = names.map(|name| {
        json!({
            "name": name, "resourceManager": base, "suffixes": {},
            "authentication": {"audiences": [base], "loginEndpoint": format!("{base}/"),
                "tenant": "common", "identityProvider": "AAD"},
        })
    });
    json!(clouds)
}

fn openid(base: &str, tenant: &str) -> Value {
    let root = format!("{base}/{tenant}");
    json!({
        "token_endpoint": format!("{root}/oauth2/v2.0/token"),
        "authorization_endpoint": format!("{root}/oauth2/v2.0/authorize"),
        "issuer": format!("{root}/v2.0"), "jwks_uri": format!("{base}/keys"),
    })
}

/// Both shapes in one: the token endpoint counts in numbers, the machine's one in strings.
fn token(request: &Request, base: &str) -> Value {
    if request.method == "GET" {
        return json!({"token_type": "Bearer", "expires_in": "86400", "expires_on": "4102444800",
            "not_before": "0", "resource": base, "client_id": "emulated",
            "access_token": "emulated"});
    }
    json!({"token_type": "Bearer", "expires_in": 86400, "ext_expires_in": 86400,
        "access_token": "emulated"})
}
