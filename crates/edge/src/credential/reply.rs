//! What token endpoints answer.

use super::{CredentialError, Retry, Secret, Token};
use serde_json::Value;

/// Reads a token from the answer of an OAuth endpoint or of the instance metadata service, whose
/// numbers come as numbers or as text.
#[must_use]
pub fn token(body: &Value, now_ms: u64) -> Option<Token> {
    let secret = body.get("access_token")?.as_str().filter(|t| !t.is_empty())?;
    let from_now =
        |name: &str| Some(now_ms.saturating_add(number(body.get(name)?)?.saturating_mul(1000)));
    let expires_ms = from_now("expires_in")
        .or_else(|| Some(number(body.get("expires_on")?)?.saturating_mul(1000)))?;
    Some(Token { secret: Secret::new(secret), expires_ms, refresh_ms: from_now("refresh_in") })
}

fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
}

/// A refusal in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// One line: what the endpoint said.
    pub reason: String,
    /// `AADSTS…`.
    pub code: Option<String>,
    /// Whether the endpoint is at fault, or busy: the same request may be answered later.
    pub passes: bool,
}

/// Codes that Entra ID gives for trouble of its own ("Microsoft Entra authentication and
/// authorization error codes"): `RetryableError`, `ExternalServerRetryableError`,
/// `RequestBudgetExceededError`, `MsodsServiceUnavailable`, `TenantThrottlingError`.
const PASSING: [&str; 5] =
    ["AADSTS50033", "AADSTS90006", "AADSTS90024", "AADSTS90033", "AADSTS90055"];

/// Errors of OAuth (RFC 6749, section 4.1.2.1) that say the same.
const PASSING_ERRORS: [&str; 2] = ["server_error", "temporarily_unavailable"];

/// Reads a refusal. `secrets` are taken out of the text should the endpoint repeat them.
#[must_use]
pub fn refusal(status: u16, body: &[u8], secrets: &[&str]) -> Refusal {
    let json: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
    let description = json
        .get("error_description")
        .or_else(|| json.pointer("/error/message"))
        .and_then(Value::as_str)
        .unwrap_or("");
    let error = json.get("error").and_then(Value::as_str).unwrap_or("");
    let line = description.lines().next().unwrap_or("").trim();
    let line = line.split(" Trace ID:").next().unwrap_or("").trim_end_matches('.');
    let text = match (error.is_empty(), line.is_empty()) {
        (false, false) => format!("HTTP {status}, {error}: {line}"),
        (false, true) => format!("HTTP {status}, {error}"),
        (true, false) => format!("HTTP {status}: {line}"),
        (true, true) => format!("HTTP {status} without an explanation"),
    };
    let mut reason: String = text.chars().filter(|c| !c.is_control()).collect();
    for secret in secrets.iter().filter(|s| !s.is_empty()) {
        reason = reason.replace(secret, "(secret)");
    }
    // Cut off afterwards: half a secret would not be found.
    let reason = reason.chars().take(600).collect();
    let code = aadsts(description);
    let own = code.as_deref().is_some_and(|code| PASSING.contains(&code));
    let passes = own || PASSING_ERRORS.contains(&error) || matches!(status, 429 | 500..);
    Refusal { code, reason, passes }
}

fn aadsts(text: &str) -> Option<String> {
    let start = text.find("AADSTS")?;
    let digits: String =
        text[start + 6..].chars().take_while(char::is_ascii_digit).take(12).collect();
    (!digits.is_empty()).then(|| format!("AADSTS{digits}"))
}

/// What to do about an `AADSTS` code.
#[must_use]
pub fn advice(code: Option<&str>) -> String {
    let known = match code {
        Some("AADSTS7000215") => "Check aadClientSecret: it must be the secret's value, not its id",
        Some("AADSTS7000222") => "The client secret has expired: make a new one and set it",
        Some("AADSTS700016") => "Check aadClientId and tenantId: the tenant knows no such client",
        Some("AADSTS90002" | "AADSTS900023") => "Check tenantId: there is no such tenant here",
        Some("AADSTS700027") => "Add the certificate at aadClientCertPath to the app registration",
        Some("AADSTS700024") => "Check this machine's clock, and that the token file is renewed",
        Some("AADSTS70021" | "AADSTS700213" | "AADSTS700211" | "AADSTS700212") => {
            "Check the federated credential: its issuer, subject and audience must be those of \
             this pod's service account token"
        }
        Some("AADSTS500011") => "Check cloud and resourceManagerEndpoint: no such audience here",
        Some("AADSTS53003") => "A conditional access rule forbids it: ask the tenant's owner",
        Some(code) => {
            let number = code.trim_start_matches("AADSTS");
            return format!("See https://login.microsoftonline.com/error?code={number}");
        }
        None => "Check the credential's settings in the cloud config",
    };
    known.to_string()
}

/// The error for a refusal.
#[must_use]
pub fn refused(attempt: &str, endpoint: &str, refusal: Refusal) -> CredentialError {
    CredentialError {
        attempt: attempt.to_string(),
        endpoint: endpoint.to_string(),
        advice: advice(refusal.code.as_deref()).into(),
        reason: refusal.reason,
        code: refusal.code,
        retry: if refusal.passes { Retry::BackOff } else { Retry::Shortly },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_come_as_numbers_or_text() {
        let oauth = json!({"access_token": "t", "expires_in": 3599, "refresh_in": 1800});
        let read = token(&oauth, 1_000).unwrap();
        assert_eq!((read.expires_ms, read.refresh_ms), (3_600_000, Some(1_801_000)));
        let imds = json!({"access_token": "t", "expires_on": "1700000000"});
        assert_eq!(token(&imds, 1_000).unwrap().expires_ms, 1_700_000_000_000);
        assert_eq!(token(&json!({"access_token": "", "expires_in": 1}), 0), None);
        assert_eq!(token(&json!({"access_token": "t"}), 0), None);
    }

    #[test]
    fn trouble_of_the_login_endpoint_is_told_from_a_refusal() {
        for (status, error, code, passes) in [
            (401, "invalid_client", "AADSTS7000215", false),
            (400, "invalid_request", "AADSTS900023", false),
            (400, "temporarily_unavailable", "AADSTS90033", true),
            (400, "invalid_request", "AADSTS90055", true),
            (503, "", "AADSTS90002", true),
            (429, "invalid_request", "AADSTS50196", true),
        ] {
            let body = json!({"error": error, "error_description": format!("{code}: why.")});
            let refusal = refusal(status, body.to_string().as_bytes(), &[]);
            assert_eq!((refusal.code.as_deref(), refusal.passes), (Some(code), passes), "{code}");
            let retry = if passes { Retry::BackOff } else { Retry::Shortly };
            assert_eq!(refused("attempt", "endpoint", refusal).retry, retry, "{code}");
        }
    }

    #[test]
    fn a_time_beyond_all_bounds_is_no_overflow() {
        let endless = json!({"access_token": "t", "expires_in": u64::MAX, "refresh_in": u64::MAX});
        let read = token(&endless, 1_000).unwrap();
        assert_eq!((read.expires_ms, read.refresh_ms), (u64::MAX, Some(u64::MAX)));
    }

    #[test]
    fn a_secret_at_the_place_where_a_long_refusal_is_cut_off_is_not_told() {
        let secret = "0123456789abcdef";
        let description = format!("{}{secret} was wrong", "x".repeat(560));
        let body = json!({"error": "invalid_client", "error_description": description});
        let told = refusal(401, body.to_string().as_bytes(), &[secret]).reason;
        assert!(!told.contains("0123"), "{told}");
    }

    #[test]
    fn a_refusal_names_its_code_on_one_line_without_secrets() {
        let body = json!({
            "error": "invalid_client",
            "error_description":
                "AADSTS7000215: Invalid client secret 'hush' provided. Trace ID: 1"
        });
        let refusal = refusal(401, body.to_string().as_bytes(), &["hush"]);
        assert_eq!(refusal.code.as_deref(), Some("AADSTS7000215"));
        assert_eq!(
            refusal.reason,
            "HTTP 401, invalid_client: AADSTS7000215: Invalid client secret '(secret)' provided"
        );
        assert!(advice(refusal.code.as_deref()).contains("aadClientSecret"));
        assert!(advice(Some("AADSTS1234")).contains("code=1234"));
    }
}
