//! TCP: accepting, connecting, carrying bytes both ways.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot::Receiver;
use tokio::task::JoinSet;

use super::{Admitted, Wire};
use crate::{Ending, EntryPoint, Flow};

const BUFFER: usize = 16 * 1024;
/// Between two tries to accept when files have run out.
const PAUSE: Duration = Duration::from_millis(50);

/// Accepts until it is dropped.
pub(super) async fn serve(wire: Wire, listener: TcpListener, entry: EntryPoint) {
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((client, peer)) => {
                let flow = Flow { client: peer, entry };
                connections.spawn(carry(wire.clone(), client, flow));
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

/// How a connection came to its end.
enum End {
    /// Both sides had said all.
    Both,
    /// One side broke it.
    Broken,
    /// The data path ends it.
    Cut(Ending),
}

async fn carry(wire: Wire, mut client: TcpStream, flow: Flow) {
    // Azure drops the packets of a flow that goes nowhere; a reset spares the client the wait.
    let Ok(Admitted { seat, ended: Some(mut ended) }) = wire.admit(flow) else {
        return reset(&client);
    };
    let server = match wire.target(seat, flow.entry) {
        Some(target) => connect(target, &mut ended).await,
        None => Err(io::Error::other("nobody has said where it is")),
    };
    let Ok(mut server) = server else {
        wire.miss();
        wire.close(&flow);
        return reset(&client);
    };
    let (_, _) = (client.set_nodelay(true), server.set_nodelay(true));
    let end = tokio::select! {
        carried = both(&wire, &flow, &mut client, &mut server) => match carried {
            Ok(()) => End::Both,
            Err(_) => End::Broken,
        },
        ending = &mut ended => ending.map_or(End::Broken, End::Cut),
    };
    wire.close(&flow);
    match end {
        End::Both => {}
        End::Cut(Ending::IdleSilent) => hush(client, server).await,
        End::Broken | End::Cut(_) => {
            reset(&client);
            reset(&server);
        }
    }
}

async fn connect(target: SocketAddr, ended: &mut Receiver<Ending>) -> io::Result<TcpStream> {
    tokio::select! {
        connected = TcpStream::connect(target) => connected,
        _ = ended => Err(io::Error::other("the flow ended before it had begun")),
    }
}

async fn both(
    wire: &Wire,
    flow: &Flow,
    client: &mut TcpStream,
    server: &mut TcpStream,
) -> io::Result<()> {
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let there = pump(wire, flow, from_client, to_server);
    let back = pump(wire, flow, from_server, to_client);
    tokio::try_join!(there, back).map(|_| ())
}

/// Carries one way until that side has said all.
async fn pump(
    wire: &Wire,
    flow: &Flow,
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let count = from.read(&mut buffer).await?;
        wire.touch(flow);
        let said = buffer.get(..count).unwrap_or_default();
        if said.is_empty() {
            return to.shutdown().await;
        }
        to.write_all(said).await?;
    }
}

/// Nothing is forwarded any more, and nobody is told.
async fn hush(mut client: TcpStream, mut server: TcpStream) {
    let (mut left, mut right) = (vec![0; BUFFER], vec![0; BUFFER]);
    loop {
        let heard = tokio::select! {
            heard = client.read(&mut left) => heard,
            heard = server.read(&mut right) => heard,
        };
        if heard.unwrap_or(0) == 0 {
            return;
        }
    }
}

/// The socket's end will be a reset.
fn reset(stream: &TcpStream) {
    // A socket that is broken already needs none.
    let _ = stream.set_zero_linger();
}
