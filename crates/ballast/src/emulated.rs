//! An emulated Azure without a socket: a run of `azure-check` on it shows what the same run would
//! call on Azure, and a recording is compared with it.

use arm::{Answer, Request, Target};
use azure_check::{Client, Site};
use azure_emulator::{Azure, Options, Switch};
use bytes::Bytes;
use edge::arm::headers;
use edge::web::WebReply;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::json;
use std::time::SystemTime;

/// How long an operation runs where nothing else is said: long enough to have headers.
const LRO_MS: u64 = 1_000;

/// The emulator's core and its time.
#[derive(Debug)]
pub struct Emulated {
    azure: Azure,
    now_ms: u64,
}

impl Emulated {
    /// An Azure with a resource group and nothing in it.
    #[must_use]
    pub fn new(site: &Site, options: Options) -> Self {
        let options = Options { location: site.location.clone(), ..options };
        let mut azure = Azure::new(options);
        let group = format!("/subscriptions/{}/resourceGroups/{}", site.subscription, site.group);
        azure.seed(vec![json!({"id": group, "location": site.location})]);
        Self { azure, now_ms: 1 }
    }

    /// One whose operations take their time, and which is as assumed in all else.
    #[must_use]
    pub fn as_assumed(site: &Site) -> Self {
        let options = Options {
            lro_ms: LRO_MS,
            api_version: Switch::On,
            ip_tags_for_life: Switch::On,
            ..Options::default()
        };
        Self::new(site, options)
    }

    /// What is behind it.
    #[must_use]
    pub fn azure(&self) -> &Azure {
        &self.azure
    }
}

impl Client for Emulated {
    fn send(&mut self, request: &Request) -> Answer {
        let (Target::Path(path) | Target::Url(path)) = &request.target;
        let answer = self.azure.handle(
            azure_emulator::Request {
                method: request.method.name().to_owned(),
                path: path.clone(),
                if_match: request.condition.if_match().map(|etag| etag.as_str().to_owned()),
                if_none_match: request.condition.if_none_match().map(str::to_owned),
                body: request.body.as_ref().map(|body| body.tree().into_owned()),
                correlation_id: Some(request.correlation.clone()),
            },
            self.now_ms,
        );
        let mut headers = HeaderMap::new();
        for (name, value) in &answer.headers {
            let name = HeaderName::from_bytes(name.as_bytes());
            if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
                headers.append(name, value);
            }
        }
        let body = answer.body.map(|body| body.to_string()).unwrap_or_default();
        let reply = WebReply {
            status: StatusCode::from_u16(answer.status).unwrap_or(StatusCode::BAD_GATEWAY),
            headers,
            body: Bytes::from(body),
        };
        // The emulator says `Retry-After` in seconds: the clock does not matter.
        Answer::Reply(Box::new(headers::reply(reply, request.method, SystemTime::UNIX_EPOCH)))
    }

    fn wait(&mut self, ms: u64) {
        self.now_ms += ms;
    }

    fn now_ms(&self) -> u64 {
        self.now_ms
    }

    fn is_stopped(&self) -> bool {
        false
    }
}
