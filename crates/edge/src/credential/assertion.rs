//! Signed proofs of a client certificate.

use super::certificate::Certificate;
use crate::random;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::digest;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaEncoding};
use serde_json::json;

/// How long a proof holds.
const LIFE_S: u64 = 600;

/// Who reads an assertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// Microsoft Entra ID: PS256 with the certificate's SHA-256 thumbprint as `x5t#S256` (Microsoft
    /// Entra's page on certificate credentials).
    Entra,
    /// AD FS, which knows certificates by their SHA-1 thumbprint only: RS256 with `x5t`, as MSAL
    /// signs for it (microsoft-authentication-library-for-python 1.39).
    Adfs,
}

/// A client assertion (RFC 7523) in the form that its reader takes. The chain lets an app trust
/// subject and issuer instead.
///
/// # Errors
/// The key cannot sign.
pub fn sign(
    certificate: &Certificate,
    client_id: &str,
    token_url: &str,
    now_ms: u64,
    reader: Reader,
) -> Result<String, ring::error::Unspecified> {
    let (alg, name, hash): (_, _, &digest::Algorithm) = match reader {
        Reader::Entra => ("PS256", "x5t#S256", &digest::SHA256),
        Reader::Adfs => ("RS256", "x5t", &digest::SHA1_FOR_LEGACY_USE_ONLY),
    };
    let thumbprint = URL_SAFE_NO_PAD.encode(digest::digest(hash, certificate.der()));
    let header = json!({
        "alg": alg,
        "typ": "JWT",
        name: thumbprint,
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
    let padding: &dyn RsaEncoding = match reader {
        Reader::Entra => &RSA_PSS_SHA256,
        Reader::Adfs => &RSA_PKCS1_SHA256,
    };
    key.sign(padding, &SystemRandom::new(), text.as_bytes(), &mut signature)?;
    Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
}
