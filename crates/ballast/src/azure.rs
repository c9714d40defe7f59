//! The connection to Azure that a cloud config describes.

use crate::cluster::user_agent;
use crate::exit::{Exit, Failure};
use edge::arm::Sender;
use edge::clock::Clock;
use edge::cloud::{CloudError, Endpoints};
use edge::credential::choice::Place;
use edge::credential::{CredentialError, Retry, TokenSource, choose};
use edge::origin::{Origin, Scheme};
use edge::web::Web;
use observe::config::CloudSettings;
use std::sync::Arc;

/// A sender, and where its tokens come from.
#[derive(Clone, Debug)]
pub struct AzureConnection {
    /// Sends requests.
    pub sender: Sender,
    tokens: Option<Arc<dyn TokenSource>>,
}

impl AzureConnection {
    /// Finds the cloud's endpoints and a credential. An emulator on loopback needs neither.
    ///
    /// # Errors
    /// [`Exit::Unavailable`]: the endpoint does not answer. [`Exit::Credential`]: there is no
    /// usable credential. [`Exit::Usage`]: the settings are wrong.
    pub async fn open(settings: &CloudSettings, clock: Clock) -> Result<Self, Failure> {
        let agent = settings.user_agent.clone().unwrap_or_else(user_agent);
        let usage = |e: &dyn std::fmt::Display| Failure::new(Exit::Usage, e);
        let endpoint = settings.resource_manager_endpoint.as_deref().unwrap_or_default();
        if !endpoint.is_empty() {
            let origin =
                Origin::parse("resourceManagerEndpoint", endpoint).map_err(|e| usage(&e))?;
            if origin.scheme() == Scheme::LoopbackHttp {
                let web = Web::loopback().map_err(|e| Failure::new(Exit::Internal, e))?;
                let sender = Sender::new(web, endpoint, None, &agent).map_err(|e| usage(&e))?;
                return Ok(Self { sender, tokens: None });
            }
        }
        let web = Web::new().map_err(|e| Failure::new(Exit::Usage, e))?;
        let stack = environment_file()?;
        let cloud =
            Endpoints::select(settings, stack.as_deref(), &web).await.map_err(|e| match e {
                CloudError::Unreachable { .. } => Failure::new(Exit::Unavailable, e),
                _ => usage(&e),
            })?;
        let tokens = choose(settings, &cloud, &web, clock, Place::detect())
            .map_err(|e| Failure::new(Exit::Credential, e))?;
        let sender = Sender::new(web, &cloud.endpoint, tokens.clone(), &agent)
            .map_err(|e| Failure::new(Exit::Credential, e))?;
        Ok(Self { sender, tokens })
    }

    /// Asks for a token once, so that a wrong credential is known before anything is planned.
    ///
    /// # Errors
    /// [`Exit::Credential`]: it was rejected. [`Exit::Unavailable`]: the endpoint could not say,
    /// and may be asked again.
    pub async fn check_credential(&self) -> Result<(), Failure> {
        let Some(tokens) = &self.tokens else { return Ok(()) };
        match tokens.token().await {
            Ok(_) => Ok(()),
            Err(e) => Err(Failure::new(exit(&e), e)),
        }
    }
}

/// Entra ID gives a code to its own trouble, too: only one that more time does not mend is final.
fn exit(error: &CredentialError) -> Exit {
    match error.code.is_some() && error.retry == Retry::Shortly {
        true => Exit::Credential,
        false => Exit::Unavailable,
    }
}

fn environment_file() -> Result<Option<String>, Failure> {
    let Some(path) = std::env::var_os("AZURE_ENVIRONMENT_FILEPATH") else { return Ok(None) };
    let text = std::fs::read_to_string(&path).map_err(|e| {
        let path = path.to_string_lossy();
        Failure::new(
            Exit::Usage,
            format!("cannot read {path}: {e}. Check AZURE_ENVIRONMENT_FILEPATH"),
        )
    })?;
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_endpoint_that_is_busy_rejects_no_credential() {
        let error = |code: Option<&str>, retry: Retry| CredentialError {
            attempt: "getting a token".to_owned(),
            endpoint: "https://login".to_owned(),
            reason: "why".to_owned(),
            code: code.map(str::to_owned),
            advice: "what to do".into(),
            retry,
        };
        let rejected = error(Some("AADSTS7000215"), Retry::Shortly);
        assert_eq!(exit(&rejected), Exit::Credential);
        let busy = error(Some("AADSTS90033"), Retry::BackOff);
        assert_eq!(exit(&busy), Exit::Unavailable);
        assert_eq!(exit(&error(None, Retry::Shortly)), Exit::Unavailable);
    }
}
