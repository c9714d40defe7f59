//! Signed proofs of a client certificate.

use super::certificate::Certificate;
use crate::random;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::digest;
use ring::rand::SystemRandom;
use ring::signature::RSA_PKCS1_SHA256;
use serde_json::json;

/// How long a proof holds.
const LIFE_S: u64 = 600;

/// A client assertion (RFC 7523), signed RS256. Both thumbprints are given: Entra looks for the
/// SHA-256 one, AD FS for the SHA-1 one. The chain lets an app trust subject and issuer instead.
///
/// # Errors
/// The key cannot sign.
pub fn sign(
    certificate: &Certificate,
    client_id: &str,
    token_url: &str,
    now_ms: u64,
) -> Result<String, ring::error::Unspecified> {
    let sha1 = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, certificate.der());
    let sha256 = digest::digest(&digest::SHA256, certificate.der());
    let header = json!({
        "alg": "RS256",
        "typ": "JWT",
        "x5t": URL_SAFE_NO_PAD.encode(sha1),
        "x5t#S256": URL_SAFE_NO_PAD.encode(sha256),
        "x5c": certificate.chain().map(|c| STANDARD.encode(c)).collect::<Vec<_>>(),
    });
    let now = now_ms / 1000;
    let claims = json!({
        "aud": token_url,
        "iss": client_id,
        "sub": client_id,
        "jti": random::uuid(),
        "iat": now,
        "nbf": now,
        "exp": now + LIFE_S,
    });
    let text = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(header.to_string()),
        URL_SAFE_NO_PAD.encode(claims.to_string())
    );
    let key = certificate.key();
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature)?;
    Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
}
