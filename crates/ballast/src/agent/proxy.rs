//! Asks the service proxy for its health.

use super::Settings;
use bytes::Bytes;
use edge::web::Web;
use health::{Fact, Proxy};
use http::header::CONNECTION;
use http::{Request, Uri};
use http_body_util::Full;
use std::str::FromStr;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How long an answer may take.
const LIMIT: Duration = Duration::from_secs(1);

/// Where the proxy tells its health.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyUrl(Uri);

impl FromStr for ProxyUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let uri: Uri = text.parse().map_err(|e| format!("it is no URL: {e}"))?;
        if uri.scheme_str() != Some("http") {
            return Err("it has to begin with http://; the proxy is asked on its own node".into());
        }
        Ok(Self(uri))
    }
}

/// Asks until stopped.
pub(super) async fn ask(settings: Settings, facts: mpsc::Sender<Fact>, stop: CancellationToken) {
    let web = Web::loopback();
    loop {
        let answer = match (&settings.proxy, &web) {
            (None, _) => Proxy::Healthy,
            (Some(url), Ok(web)) => ask_once(web, url).await,
            (Some(_), Err(e)) => Proxy::Ill(e.to_string()),
        };
        if facts.send(Fact::Proxy(answer)).await.is_err() {
            return;
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(settings.interval) => {}
        }
    }
}

async fn ask_once(web: &Web, ProxyUrl(url): &ProxyUrl) -> Proxy {
    // A connection kept from before says more about the last process than about this one.
    let request =
        Request::get(url.clone()).header(CONNECTION, "close").body(Full::<Bytes>::default());
    let request = match request {
        Ok(request) => request,
        Err(e) => return Proxy::Ill(format!("{url} cannot be asked: {e}")),
    };
    match web.send(request, LIMIT).await {
        Ok(reply) if reply.status.as_u16() == 200 => Proxy::Healthy,
        Ok(reply) => Proxy::Ill(format!("GET {url}: HTTP {}", reply.status.as_u16())),
        Err(e) => Proxy::Ill(format!("GET {url}: {e}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_http_is_asked() {
        assert!("http://127.0.0.1:10256/healthz".parse::<ProxyUrl>().is_ok());
        for wrong in ["https://127.0.0.1:10256/healthz", "127.0.0.1:10256", "/healthz", ""] {
            assert!(wrong.parse::<ProxyUrl>().is_err(), "{wrong:?}");
        }
    }
}
