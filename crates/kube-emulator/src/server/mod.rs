//! The HTTP server: reads requests, asks the store, turns watches into streams.

mod host;
mod stream;

use crate::request::{Body, Method, Request, Response};
use crate::status::ApiError;
use crate::store::Store;
use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How long answers under way may take after the server was told to end. Watches end by
/// themselves; a connection that never carried a request would stay.
const FAREWELL: Duration = Duration::from_millis(250);

/// A store that several tasks use, and a signal that it changed.
#[derive(Debug, Clone)]
pub struct Shared {
    store: Arc<Mutex<Store>>,
    revision: Arc<watch::Sender<u64>>,
}

impl Shared {
    /// Shares a store.
    pub fn new(store: Store) -> Self {
        let (revision, _) = watch::channel(store.revision());
        Self { store: Arc::new(Mutex::new(store)), revision: Arc::new(revision) }
    }

    /// Uses the store; open watches then see what changed. The second argument is the time.
    pub fn with<T>(&self, act: impl FnOnce(&mut Store, u64) -> T) -> T {
        let mut store = self.lock();
        let result = act(&mut store, now_ms());
        let revision = store.revision();
        drop(store);
        self.revision.send_if_modified(|seen| {
            let changed = *seen != revision;
            *seen = revision;
            changed
        });
        result
    }

    fn lock(&self) -> MutexGuard<'_, Store> {
        // A panic inside the store has been reported; its last whole state is still the best
        // there is.
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[allow(clippy::disallowed_methods, reason = "the server is where the clock is read")]
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A kubeconfig for the server at an address.
pub fn kubeconfig(address: SocketAddr) -> String {
    format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: ballast\n  cluster:\n    \
         server: http://{address}\ncontexts:\n- name: ballast\n  context:\n    \
         cluster: ballast\n    user: ballast\n    namespace: default\n\
         current-context: ballast\nusers:\n- name: ballast\n  user: {{}}\n"
    )
}

/// Serves the store until `shutdown` is done; open watches end at once then.
///
/// # Errors
/// If the listener fails for good.
pub async fn serve(
    listener: TcpListener,
    store: Shared,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let (ending, ended) = watch::channel(());
    let mut connections = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(talk(stream, store.clone(), ended.clone()));
                }
                // One connection that could not be had (out of descriptors, reset before it
                // was accepted) is no reason to leave the others alone.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    drop(ending);
    let all = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(FAREWELL, all).await.is_err() {
        connections.abort_all();
    }
    Ok(())
}

async fn talk(stream: TcpStream, store: Shared, mut ended: watch::Receiver<()>) {
    let ended_streams = ended.clone();
    let service = service_fn(move |request| {
        let (store, ended) = (store.clone(), ended_streams.clone());
        async move { Ok::<_, Infallible>(answer(request, store, ended).await) }
    });
    // Without this, small watch events wait for the peer's acknowledgement.
    let _ = stream.set_nodelay(true);
    let connection =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    // A connection that breaks concerns its client only.
    tokio::select! {
        _ = connection.as_mut() => {}
        _ = ended.changed() => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

type Reply = hyper::Response<BoxBody<Bytes, Infallible>>;

async fn answer(
    request: hyper::Request<Incoming>,
    store: Shared,
    ended: watch::Receiver<()>,
) -> Reply {
    let (head, body) = request.into_parts();
    let Some(method) = Method::parse(head.method.as_str()) else {
        return whole(&Response::refusal(&ApiError::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )));
    };
    let Ok(body) = body.collect().await else {
        return whole(&Response::refusal(&ApiError::bad_request("the body broke off")));
    };
    let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
    let header = |name: http::HeaderName| {
        let values = head.headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.collect::<Vec<_>>().join(",")
    };
    let mut request = Request::new(method, target);
    request.accept = header(http::header::ACCEPT);
    request.content_type = header(http::header::CONTENT_TYPE);
    request.user_agent = header(http::header::USER_AGENT);
    request.body = body.to_bytes().to_vec();
    if let Some(refusal) = refused_outright(&head.headers, &request) {
        return whole(&Response::refusal(&refusal));
    }
    let response = store.with(|store, now| store.handle(&request, now));
    match response.body {
        Body::Watch(start) => stream::reply(*start, store, ended),
        _ => whole(&response),
    }
}

/// What a web page could send here without asking first: under a name of its own, or with a body
/// that does not say what it is. The API server takes such a body for JSON, and Kubernetes' Python
/// client sends it; a browser names the page's origin with it.
fn refused_outright(headers: &http::HeaderMap, request: &Request) -> Option<ApiError> {
    let named = headers.get(http::header::HOST).map(|host| host.to_str().unwrap_or("?.?"));
    if !host::is_own(named) {
        let message = format!(
            "this server is not {}: use its address or a name without dots",
            named.unwrap_or_default()
        );
        return Some(ApiError::new(421, "MisdirectedRequest", message));
    }
    let from_a_page = headers.contains_key(http::header::ORIGIN);
    (from_a_page && !request.body.is_empty() && request.content_type.is_empty()).then(|| {
        let message = "the body of the request has no content type; send content-type: \
                       application/json";
        ApiError::new(415, "UnsupportedMediaType", message)
    })
}

fn whole(response: &Response) -> Reply {
    let mut builder = hyper::Response::builder()
        .status(response.code)
        .header(http::header::CONTENT_TYPE, response.content_type)
        .header(http::header::CACHE_CONTROL, "no-cache, private");
    if let Some(seconds) = response.retry_after_s {
        builder = builder.header(http::header::RETRY_AFTER, seconds);
    }
    let body = Full::new(Bytes::from(response.bytes())).boxed();
    builder.body(body).expect("codes and headers of the API are valid")
}
