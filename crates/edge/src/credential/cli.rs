//! Tokens of whoever is logged in with the Azure CLI, for runs outside a cluster.

use super::{CredentialError, Retry, Secret, Token, TokenSource};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

const LIMIT: Duration = Duration::from_secs(60);

/// The Azure CLI.
#[derive(Clone, Debug)]
pub struct Cli {
    program: PathBuf,
    audience: String,
    tenant: Option<String>,
}

impl Cli {
    /// The `az` on the path.
    #[must_use]
    pub fn new(audience: &str, tenant: Option<&str>) -> Self {
        let tenant = tenant.filter(|t| !t.is_empty()).map(str::to_string);
        Self { program: PathBuf::from("az"), audience: audience.to_string(), tenant }
    }

    /// Another program that answers like it.
    #[must_use]
    pub fn with_program(mut self, program: &Path) -> Self {
        self.program = program.to_path_buf();
        self
    }

    async fn fetch(&self) -> Result<Token, CredentialError> {
        let mut command = Command::new(&self.program);
        command.args(["account", "get-access-token", "--output", "json", "--resource"]);
        command.arg(&self.audience);
        if let Some(tenant) = &self.tenant {
            command.args(["--tenant", tenant]);
        }
        command.stdin(Stdio::null()).kill_on_drop(true);
        let ended = match tokio::time::timeout(LIMIT, command.output()).await {
            Ok(Ok(ended)) => ended,
            Ok(Err(e)) => {
                let advice = "Install the Azure CLI, or set a credential in the cloud config";
                return Err(self.failed(format!("cannot run it: {e}"), advice));
            }
            Err(_) => {
                let why = format!("it did not end within {} s", LIMIT.as_secs());
                return Err(self.failed(why, "Run it by hand to see what it waits for"));
            }
        };
        if !ended.status.success() {
            let said = String::from_utf8_lossy(&ended.stderr);
            let line = said.lines().find(|l| !l.trim().is_empty()).unwrap_or("it said nothing");
            let line: String = line.chars().take(400).collect();
            let why = format!("{}: {line}", ended.status);
            return Err(self.failed(why, "Run az login, and check az account show"));
        }
        token(&ended.stdout).ok_or_else(|| {
            let advice = "Bring the Azure CLI up to date: 2.54 or later is needed";
            self.failed("its answer holds no token with expires_on".into(), advice)
        })
    }

    fn failed(&self, reason: String, advice: &str) -> CredentialError {
        CredentialError {
            attempt: "getting a token from the Azure CLI".into(),
            endpoint: format!("`{} account get-access-token`", self.program.display()),
            reason,
            code: None,
            retry: Retry::Shortly,
            advice: advice.into(),
        }
    }
}

/// Reads what `az account get-access-token` prints.
#[must_use]
pub fn token(stdout: &[u8]) -> Option<Token> {
    let body: Value = serde_json::from_slice(stdout).ok()?;
    let secret = body.get("accessToken")?.as_str().filter(|t| !t.is_empty())?;
    let expires_ms = body.get("expires_on")?.as_u64()?.saturating_mul(1000);
    Some(Token { secret: Secret::new(secret), expires_ms, refresh_ms: None })
}

impl TokenSource for Cli {
    fn token(&self) -> BoxFuture<'_, Result<Token, CredentialError>> {
        self.fetch().boxed()
    }
}
