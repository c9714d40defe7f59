//! The HTTP server: plain HTTP/1.1, one task a connection. It holds the clock and the lock; what
//! is answered is the state machine's business.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use data_path::{Hosts, Semantics, Tables, Wire};
use http::{HeaderMap, HeaderValue, Response};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::azure::{Azure, not_json};
use crate::host;
use crate::message::{Answer, Checked, Fate, Request, refusal};

/// How often a call without an answer looks whether the rules were cleared.
const HUNG_LOOK: Duration = Duration::from_millis(100);

/// An Azure that several connections share.
pub type Shared = Arc<Mutex<Azure>>;

/// Serves until `shutdown` is ready; open connections are then closed. Absolute links point at
/// the listener unless [`crate::Options::base_url`] says otherwise.
///
/// # Errors
/// The listener has no address or accepting a connection failed.
pub async fn serve(
    listener: TcpListener,
    azure: Shared,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    answer_all(listener, azure, None, shutdown).await
}

/// The same with a data path, which listens for the frontends for as long.
///
/// # Errors
/// The listener has no address or accepting a connection failed.
pub async fn serve_with(
    listener: TcpListener,
    azure: Shared,
    wire: Wire,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let running = wire.clone().run(changes(Arc::clone(&azure)));
    tokio::select! {
        served = answer_all(listener, azure, Some(wire), shutdown) => served,
        () = running => Ok(()),
    }
}

/// Gives the data path's tables whenever a resource has changed.
fn changes(azure: Shared) -> impl FnMut() -> Option<Tables> {
    let mut seen = None;
    move || {
        let azure = azure.lock().unwrap_or_else(PoisonError::into_inner);
        let revision = Some(azure.revision());
        (revision != seen).then(|| {
            seen = revision;
            azure.tables()
        })
    }
}

/// Answers the paths below `/_/data-path`; `None` if the path is another.
fn answer_data_path(wire: &Wire, request: &Request) -> Option<Answer> {
    let path = request.path.split('?').next().unwrap_or("").trim_end_matches('/');
    let body = request.body.clone().unwrap_or(Value::Null);
    let placed = match (request.method.as_str(), path) {
        ("GET", "/_/data-path") => return Some(Answer::new(200, Some(wire.view()))),
        ("POST", "/_/data-path/hosts") => serde_json::from_value::<Hosts>(body)
            .map_err(|error| format!("reading the hosts failed: {error}; correct the body"))
            .and_then(|hosts| wire.place(hosts)),
        ("POST", "/_/data-path/semantics") => serde_json::from_value::<Semantics>(body)
            .map_err(|error| format!("reading the semantics failed: {error}; correct the body"))
            .map(|semantics| wire.set_semantics(semantics)),
        _ => return None,
    };
    Some(match placed {
        Ok(()) => Answer::new(200, Some(json!({}))),
        Err(reason) => Answer::from(refusal(400, "InvalidDataPath", reason)),
    })
}

async fn answer_all(
    listener: TcpListener,
    azure: Shared,
    wire: Option<Wire>,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    {
        let mut azure = azure.lock().unwrap_or_else(PoisonError::into_inner);
        let options = azure.options_mut();
        if options.base_url.is_empty() {
            options.base_url = format!("http://{address}");
        }
    }
    let started = Instant::now();
    let (stop, stopped) = watch::channel(());
    tokio::pin!(shutdown);
    loop {
        let stream = tokio::select! {
            () = &mut shutdown => break,
            accepted = listener.accept() => accepted?.0,
        };
        let (azure, mut stopped) = (Arc::clone(&azure), stopped.clone());
        let wire = wire.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = connection(stream, azure, wire, started) => {}
                _ = stopped.changed() => {}
            }
        });
    }
    drop(stop);
    Ok(())
}

async fn connection(stream: TcpStream, azure: Shared, wire: Option<Wire>, started: Instant) {
    // Small answers must not wait for the client's acknowledgement.
    let _ = stream.set_nodelay(true);
    let service =
        service_fn(move |request| answer(request, Arc::clone(&azure), wire.clone(), started));
    // A broken connection ends this task and nothing else.
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(
    request: http::Request<Incoming>,
    azure: Shared,
    wire: Option<Wire>,
    started: Instant,
) -> Result<Response<Reply>, Broken> {
    let (parts, body) = request.into_parts();
    let bytes = body.collect().await.map_err(|_| Broken)?.to_bytes();
    let header = |name: &str| text(&parts.headers, name);
    if let Some(refused) = refused_outright(&parts.headers, &azure) {
        return Ok(response(refused));
    }
    let mut request = Request {
        method: parts.method.as_str().to_uppercase(),
        path: parts.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
        if_match: header("if-match"),
        if_none_match: header("if-none-match"),
        body: None,
        correlation_id: header("x-ms-correlation-request-id"),
    };
    if !bytes.is_empty() {
        request.body = match body_of(&request.path, header("content-type").as_deref(), &bytes) {
            Ok(body) => body,
            Err(refused) => return Ok(response(Answer::from(refused))),
        };
    }
    if let Some(answer) = wire.as_ref().and_then(|wire| answer_data_path(wire, &request)) {
        return Ok(response(answer));
    }
    let probed = wire.filter(|_| asks_for_metrics(&request.path)).map(|wire| wire.probed());
    let now_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (answer, cleared) = {
        let mut azure = azure.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(probed) = probed {
            azure.set_probed(probed);
        }
        (azure.handle(request, now_ms), azure.faults_cleared())
    };
    match answer.fate {
        Fate::ResetBefore | Fate::ResetAfter => Err(Broken),
        Fate::Hang => {
            while azure.lock().unwrap_or_else(PoisonError::into_inner).faults_cleared() == cleared {
                tokio::time::sleep(HUNG_LOOK).await;
            }
            Err(Broken)
        }
        Fate::Delay(ms) => {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            Ok(response(answer))
        }
        Fate::Deliver | Fate::Truncated => Ok(response(answer)),
    }
}

/// Whether what the probes have found is to be at hand.
fn asks_for_metrics(path: &str) -> bool {
    path.to_ascii_lowercase().contains("/providers/microsoft.insights/metrics")
}

/// A request under a name that is not this server's.
fn refused_outright(headers: &HeaderMap, azure: &Shared) -> Option<Answer> {
    let named = headers.get("host").map(|host| host.to_str().unwrap_or("?.?"));
    let base = {
        let azure = azure.lock().unwrap_or_else(PoisonError::into_inner);
        azure.options().base_url.clone()
    };
    if host::is_own(named, &base) {
        return None;
    }
    let message = format!(
        "This server is not {}: use its address or a name without dots.",
        named.unwrap_or_default()
    );
    Some(Answer::from(refusal(421, "MisdirectedRequest", message)))
}

/// A body, which must be JSON and say so. Sign-in alone sends forms, which nothing looks into.
fn body_of(path: &str, kind: Option<&str>, bytes: &[u8]) -> Checked<Option<Value>> {
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or("").trim();
    let resource =
        path.starts_with("/_/") || path.to_ascii_lowercase().starts_with("/subscriptions");
    if !resource && kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        return Ok(None);
    }
    if !kind.eq_ignore_ascii_case("application/json") {
        let message = format!(
            "The content media type '{kind}' is not supported. Only 'application/json' is \
             supported."
        );
        return Err(refusal(415, "UnsupportedMediaType", message));
    }
    serde_json::from_slice(bytes).map(Some).map_err(|_| not_json())
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

fn response(answer: Answer) -> Response<Reply> {
    let bytes = answer.body.as_ref().map(|body| body.to_string().into_bytes()).unwrap_or_default();
    let mut response = Response::new(Reply::Empty);
    *response.status_mut() = http::StatusCode::from_u16(answer.status)
        .unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    for (name, value) in &answer.headers {
        let name = http::HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
            headers.append(name, value);
        }
    }
    if answer.status != 204 {
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        headers.insert("content-length", HeaderValue::from(bytes.len()));
        *response.body_mut() = match answer.fate {
            Fate::Truncated => Reply::Half(Some(Bytes::from(bytes).slice(..answer_half(&answer)))),
            _ => Reply::Whole(Some(Bytes::from(bytes))),
        };
    }
    response
}

fn answer_half(answer: &Answer) -> usize {
    answer.body.as_ref().map_or(0, |body| body.to_string().len() / 2)
}

/// The connection is to be closed without a word.
#[derive(Debug)]
struct Broken;

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the connection is broken on order")
    }
}

impl std::error::Error for Broken {}

impl From<Infallible> for Broken {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// A body that arrives whole, or breaks off.
enum Reply {
    Empty,
    Whole(Option<Bytes>),
    Half(Option<Bytes>),
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let taken = match self.get_mut() {
            Reply::Empty => return Poll::Ready(None),
            Reply::Whole(bytes) => bytes.take().map(|bytes| Ok(Frame::data(bytes))),
            Reply::Half(bytes) => {
                Some(bytes.take().map_or(Err(Broken), |bytes| Ok(Frame::data(bytes))))
            }
        };
        Poll::Ready(taken)
    }
}
