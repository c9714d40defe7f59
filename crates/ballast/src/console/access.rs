//! Who may look at the console.

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::exit::{Exit, Failure};

/// Letters a token has at least.
const SHORTEST: usize = 16;

/// Who may look at pages that tell about Services.
#[derive(Clone)]
pub enum Access {
    /// Who is on this machine: the listener is on a loopback address.
    Machine,
    /// Who knows the token.
    Token(TokenFile),
    /// Nobody: the listener is for everybody, and plain.
    Nobody,
}

/// A token, and the file that has it. The file is read again for each request: it is renewed in
/// place. A file that cannot be used leaves the token that was read last, and the log says so.
#[derive(Clone)]
pub struct TokenFile {
    file: Arc<Path>,
    last: Arc<Mutex<Last>>,
}

/// What was read last.
struct Last {
    token: Arc<str>,
    /// The trouble with the file that was logged last.
    said: String,
}

impl TokenFile {
    /// Reads a token from a file.
    ///
    /// # Errors
    /// The file cannot be read, or its token is too short.
    fn open(file: &Path) -> Result<Self, String> {
        let token = token(file, std::fs::read_to_string(file))?;
        let last = Arc::new(Mutex::new(Last { token, said: String::new() }));
        Ok(Self { file: Arc::from(file), last })
    }

    /// The token as it is now.
    async fn token(&self) -> Arc<str> {
        let read = token(&self.file, tokio::fs::read_to_string(&self.file).await);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match read {
            Ok(token) => {
                last.token = token;
                last.said.clear();
            }
            Err(why) if last.said != why => {
                tracing::warn!("the console's token stays as it was: {why}");
                last.said = why;
            }
            Err(_) => {}
        }
        Arc::clone(&last.token)
    }
}

/// The token in what was read of a file.
fn token(file: &Path, read: io::Result<String>) -> Result<Arc<str>, String> {
    let name = file.display();
    let text = read.map_err(|e| {
        format!("cannot read the console's token from {name}: {e}. Check --console-token-file")
    })?;
    let token = text.trim();
    if token.len() < SHORTEST || !token.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(format!(
            "the console's token in {name} cannot be used: allowed are {SHORTEST} or more \
             printable letters without blanks. `openssl rand -hex 32` makes one"
        ));
    }
    Ok(Arc::from(token))
}

impl Access {
    /// Reads a token from a file.
    ///
    /// # Errors
    /// The file cannot be read, or its token is too short.
    pub fn with_token(file: &Path) -> Result<Self, Failure> {
        TokenFile::open(file).map(Self::Token).map_err(|why| Failure::new(Exit::Usage, why))
    }

    /// What holds at an address that is served without a token.
    #[must_use]
    pub fn at(address: SocketAddr) -> Self {
        if address.ip().is_loopback() { Self::Machine } else { Self::Nobody }
    }
}

/// Lets through who may look.
pub async fn guard(State(access): State<Access>, request: Request, next: Next) -> Response {
    match refusal(&access, request.headers()).await {
        None => next.run(request).await,
        Some(refusal) => refusal,
    }
}

async fn refusal(access: &Access, headers: &HeaderMap) -> Option<Response> {
    let header = |name| headers.get(name).and_then(|v| v.to_str().ok());
    match access {
        Access::Machine => {
            // A page from elsewhere may give its own name this machine's address.
            if header(HOST).is_none_or(is_this_machine) {
                return None;
            }
            let why = "the console answers only to localhost and to loopback addresses\n";
            Some((StatusCode::FORBIDDEN, why).into_response())
        }
        Access::Token(token) => {
            let token = token.token().await;
            if header(AUTHORIZATION).is_some_and(|given| is_right(given, &token)) {
                return None;
            }
            let ask = [(WWW_AUTHENTICATE, "Basic realm=\"Ballast\", charset=\"UTF-8\"")];
            let why = "the console wants its token: as a bearer token, or as the password of any \
                       user\n";
            Some((StatusCode::UNAUTHORIZED, ask, why).into_response())
        }
        Access::Nobody => {
            let why = "the console and /status are not served here: this address can be reached \
                       from elsewhere. Give --console-token-file, --tls-cert-file and \
                       --tls-key-file, or --console-port for loopback\n";
            Some((StatusCode::FORBIDDEN, why).into_response())
        }
    }
}

fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let name = name.to_ascii_lowercase();
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn is_right(given: &str, token: &str) -> bool {
    let Some((scheme, rest)) = given.split_once(' ') else { return false };
    if scheme.eq_ignore_ascii_case("bearer") {
        return is_same(rest.trim().as_bytes(), token.as_bytes());
    }
    let password = scheme
        .eq_ignore_ascii_case("basic")
        .then(|| STANDARD.decode(rest.trim()).ok())
        .flatten()
        .and_then(|pair| {
            let colon = pair.iter().position(|b| *b == b':')?;
            pair.get(colon + 1..).map(<[u8]>::to_vec)
        });
    password.is_some_and(|p| is_same(&p, token.as_bytes()))
}

/// Takes as long wherever the two differ.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    let differing = a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b));
    std::hint::black_box(differing) == 0 && a.len() == b.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_this_machine() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:10270", "127.1.2.3", "[::1]:1"] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in ["example.com", "localhost.example.com:80", "10.0.0.1", "[2001:db8::1]", ""] {
            assert!(!is_this_machine(host), "{host}");
        }
    }

    #[test]
    fn a_token_is_taken_as_bearer_and_as_password() {
        let token = "0123456789abcdef";
        let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
        for right in
            [format!("Bearer {token}"), basic(":0123456789abcdef"), basic("me:0123456789abcdef")]
        {
            assert!(is_right(&right, token), "{right}");
        }
        let wrong = [
            "Bearer 0123456789abcdeF".to_owned(),
            "Bearer 0123456789abcde".to_owned(),
            "Bearer ".to_owned(),
            token.to_owned(),
            basic("0123456789abcdef"),
            "Basic %".to_owned(),
        ];
        for wrong in wrong {
            assert!(!is_right(&wrong, token), "{wrong}");
        }
    }
}
