//! A loopback server that follows a script, for tests.

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use http::{HeaderMap, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::io;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |v| v.to_str().unwrap())
    }
}

/// What the server does with a request.
pub(crate) enum Act {
    /// Answers: status, headers, body.
    Reply(u16, Vec<(&'static str, String)>, String),
    /// Answers 200 and sends pieces, then does as `Then` says.
    Stream(Vec<String>, Then),
    /// Closes the connection without an answer.
    Drop,
    /// Never answers.
    Hang,
}

/// What follows the pieces of a stream.
#[derive(Clone, Copy)]
pub(crate) enum Then {
    Close,
    Cut,
    Hang,
}

pub(crate) fn json(status: u16, body: &serde_json::Value) -> Act {
    Act::Reply(status, vec![("content-type", "application/json".into())], body.to_string())
}

type Script = Arc<dyn Fn(&Seen, usize) -> Act + Send + Sync>;

/// The server. It stops when dropped.
pub(crate) struct Fake {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: AbortHandle,
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Fake {
    /// Starts a server; the script gets the request and how many came before it.
    pub(crate) async fn start(
        script: impl Fn(&Seen, usize) -> Act + Send + Sync + 'static,
    ) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", socket.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let script: Script = Arc::new(script);
        let list = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = socket.accept().await {
                let (script, list) = (Arc::clone(&script), Arc::clone(&list));
                tokio::spawn(async move {
                    let service =
                        service_fn(move |r| act(Arc::clone(&script), Arc::clone(&list), r));
                    let server = hyper::server::conn::http1::Builder::new();
                    // A connection that the script breaks ends in an error.
                    let _ = server.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { url, seen, task: task.abort_handle() }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

async fn act(
    script: Script,
    list: Arc<Mutex<Vec<Seen>>>,
    request: Request<Incoming>,
) -> Result<Response<UnsyncBoxBody<Bytes, io::Error>>, io::Error> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let seen = Seen {
        method: parts.method.to_string(),
        path: parts.uri.to_string(),
        headers: parts.headers,
        body: String::from_utf8(body.to_vec()).unwrap(),
    };
    let before = {
        let mut list = list.lock().unwrap();
        list.push(seen.clone());
        list.len() - 1
    };
    let full = |text: String| Full::new(Bytes::from(text)).map_err(|e| match e {}).boxed_unsync();
    match script(&seen, before) {
        Act::Reply(status, headers, text) => {
            let mut reply = Response::builder().status(status);
            for (name, value) in headers {
                reply = reply.header(name, value);
            }
            Ok(reply.body(full(text)).unwrap())
        }
        Act::Stream(pieces, then) => {
            let frames = stream::iter(pieces).map(|p| Ok(Frame::data(Bytes::from(p))));
            let end: stream::BoxStream<'static, Result<Frame<Bytes>, io::Error>> = match then {
                Then::Close => stream::empty().boxed(),
                Then::Cut => stream::once(async {
                    // Give what was sent time to be flushed by itself.
                    tokio::task::yield_now().await;
                    Err(io::Error::other("cut"))
                })
                .boxed(),
                Then::Hang => stream::pending().boxed(),
            };
            Ok(Response::new(BodyExt::boxed_unsync(StreamBody::new(frames.chain(end)))))
        }
        Act::Drop => Err(io::Error::other("dropped")),
        Act::Hang => std::future::pending().await,
    }
}
