//! Serves pages to many without being held up, or filled up, by any.
//!
//! # Guarantees
//! - A connection whose request is not there in whole within [`Limits::header`] is closed, one that
//!   is idle as well.
//! - A request with more than [`Limits::header_bytes`] of headers is refused.
//! - No more than [`Limits::connections`] stand. One more closes the oldest of the address with the
//!   most: half-open connections, however many, do not keep the kubelet's probes out.

use axum::Router;
use axum::serve::Listener;
use hyper::server::conn::http1::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How long answers under way may take to end at a shutdown.
const GRACE: Duration = Duration::from_secs(2);

/// What a listener puts up with.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long a connection may take until a whole request is there, also between two.
    pub header: Duration,
    /// Bytes of a request's line and headers.
    pub header_bytes: usize,
    /// Connections at a time.
    pub connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { header: Duration::from_secs(5), header_bytes: 16 << 10, connections: 256 }
    }
}

/// Answers until stopped; then answers under way may end.
pub async fn serve<L>(mut listener: L, app: Router, limits: Limits, stop: CancellationToken)
where
    L: Listener<Addr = SocketAddr>,
{
    let mut http = Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.header)
        .max_buf_size(limits.header_bytes);
    let places = Arc::new(Places { most: limits.connections, standing: Mutex::default() });
    let mut connections = JoinSet::new();
    loop {
        let (stream, peer) = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let place = places.take(peer.ip());
        let service = TowerToHyperService::new(app.clone());
        let connection = http.serve_connection(TokioIo::new(stream), service);
        let stop = stop.clone();
        connections.spawn(async move {
            tokio::pin!(connection);
            tokio::select! {
                // However it ended, it is over.
                _ = connection.as_mut() => {}
                () = place.lost.cancelled() => {}
                () = stop.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    let _ = tokio::time::timeout(GRACE, connection).await;
                }
            }
        });
    }
    // What connects from here on is refused at once, or finds a successor on the same port.
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Who is connected.
struct Places {
    most: usize,
    standing: Mutex<Standing>,
}

#[derive(Default)]
struct Standing {
    next: u64,
    by_age: BTreeMap<u64, (IpAddr, CancellationToken)>,
}

/// One connection's place, given back when it is dropped.
struct Place {
    number: u64,
    places: Arc<Places>,
    /// Cancelled where another connection takes the place.
    lost: CancellationToken,
}

impl Places {
    fn take(self: &Arc<Self>, peer: IpAddr) -> Place {
        let mut standing = self.lock();
        while standing.by_age.len() >= self.most.max(1) {
            standing.let_one_go();
        }
        let (number, lost) = (standing.next, CancellationToken::new());
        standing.next += 1;
        standing.by_age.insert(number, (peer, lost.clone()));
        Place { number, places: Arc::clone(self), lost }
    }

    fn lock(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Standing {
    fn let_one_go(&mut self) {
        let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for (peer, _) in self.by_age.values() {
            *counts.entry(*peer).or_default() += 1;
        }
        let crowd = counts.into_iter().max_by_key(|(_, count)| *count).map(|(peer, _)| peer);
        let oldest = self.by_age.iter().find(|(_, (peer, _))| Some(*peer) == crowd);
        let Some(number) = oldest.map(|(number, _)| *number) else { return };
        if let Some((_, lost)) = self.by_age.remove(&number) {
            lost.cancel();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().by_age.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::Notify;

    const WHOLE: &str = "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n";

    async fn served(limits: Limits) -> SocketAddr {
        let socket = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = socket.local_addr().expect("it is bound");
        let app = Router::new().route("/livez", get(async || "ok\n"));
        tokio::spawn(serve(socket, app, limits, CancellationToken::new()));
        address
    }

    fn patient() -> Limits {
        Limits { header: Duration::from_secs(3_600), ..Limits::default() }
    }

    async fn send(address: SocketAddr, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        // One that is refused may be closed before all is sent.
        let _ = stream.write_all(text.as_bytes()).await;
        stream
    }

    /// All that comes until the other side closes.
    async fn rest(mut stream: TcpStream) -> String {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes).await;
        String::from_utf8_lossy(&bytes).into_owned()
    }

    async fn answer(stream: &mut TcpStream) -> String {
        let mut bytes = [0; 1_024];
        let count = stream.read(&mut bytes).await.expect("an answer");
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    }

    #[tokio::test]
    async fn half_sent_and_idle_connections_are_closed() {
        let limits = Limits { header: Duration::from_millis(50), ..Limits::default() };
        let address = served(limits).await;
        assert_eq!(rest(send(address, "").await).await, "");
        assert_eq!(rest(send(address, "GET /livez HTTP/1.1\r\nHos").await).await, "");
        let mut idle = send(address, WHOLE).await;
        assert!(answer(&mut idle).await.ends_with("ok\n"));
        assert_eq!(rest(idle).await, "");
    }

    #[tokio::test]
    async fn headers_have_an_end() {
        let address = served(patient()).await;
        let with =
            |bytes: usize| format!("GET /livez HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(bytes));
        let mut short = send(address, &with(15 << 10)).await;
        assert!(answer(&mut short).await.starts_with("HTTP/1.1 200"));
        let mut long = send(address, &with(17 << 10)).await;
        assert!(answer(&mut long).await.starts_with("HTTP/1.1 431"));
    }

    #[tokio::test]
    async fn many_half_open_connections_keep_no_probe_out() {
        let address = served(Limits { connections: 8, ..patient() }).await;
        let first = send(address, "GET ").await;
        let mut others = Vec::new();
        for _ in 0..100 {
            others.push(send(address, "GET ").await);
        }
        let mut probe = send(address, WHOLE).await;
        assert!(answer(&mut probe).await.ends_with("ok\n"));
        assert_eq!(rest(first).await, "", "the oldest went");
    }

    #[tokio::test]
    async fn a_listener_that_is_stopped_takes_no_connection_while_an_answer_is_under_way() {
        let socket = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = socket.local_addr().expect("it is bound");
        let (asked, go_on, stop) = (Notify::new(), Notify::new(), CancellationToken::new());
        let both = Arc::new((asked, go_on));
        let shared = Arc::clone(&both);
        let slow = async move || {
            shared.0.notify_one();
            shared.1.notified().await;
            "ok\n"
        };
        let app = Router::new().route("/livez", get(slow));
        let served = tokio::spawn(serve(socket, app, Limits::default(), stop.clone()));
        let first = send(address, WHOLE).await;
        both.0.notified().await;
        stop.cancel();
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        both.1.notify_one();
        assert!(rest(first).await.ends_with("ok\n"), "its answer has come all the same");
        served.await.expect("it has ended");
    }

    #[test]
    fn who_has_the_most_connections_loses_one() {
        let places = Arc::new(Places { most: 4, standing: Mutex::default() });
        let peer = |n| IpAddr::from([10, 0, 0, n]);
        let kubelet = places.take(peer(1));
        let crowd: Vec<Place> = (0..6).map(|_| places.take(peer(9))).collect();
        assert!(!kubelet.lost.is_cancelled());
        let lost = |place: &Place| place.lost.is_cancelled();
        assert_eq!(
            crowd.iter().map(lost).collect::<Vec<_>>(),
            [true, true, true, false, false, false]
        );
        drop(crowd);
        assert_eq!(places.lock().by_age.len(), 1);
    }
}
