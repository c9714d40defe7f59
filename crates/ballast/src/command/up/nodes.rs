//! What answers on the sample's nodes and pods, and with a data path, where frontends really are.

use super::proxies::{Machines, hosts};
use crate::exit::{Exit, Failure};
use crate::output::{self, Ink, Paint};
use azure_emulator::SampleOptions;
use data_path::{Host, Transport, Wire, WireOptions};
use kube_emulator::Shared;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::sync::CancellationToken;

/// Between two looks at where frontends are.
const PACE: Duration = Duration::from_millis(200);

/// Nodes that are probed where no data path is asked for: each takes a socket.
const MOST_NODES: u32 = 100;
/// Pairs of Service and node: more probes would take the processor from what is looked at.
const MOST_PROBES: u32 = 1_000;

/// Whether a sample is small enough to be probed where no data path is asked for.
pub(super) fn are_few(nodes: u32, services: u32) -> bool {
    nodes <= MOST_NODES && nodes.saturating_mul(services) <= MOST_PROBES
}

/// A data path that listens at no frontend: it only asks what health probes want to know.
pub(super) fn probing() -> Wire {
    Wire::new(WireOptions { max_listeners: 0, ..WireOptions::default() })
}

/// Starts something that answers HTTP with its name on each node, and one for all pods; then shuts
/// and opens ports of nodes as the cluster's Pods and nodes become ready, until stopped.
///
/// # Errors
/// No port is free.
pub(super) async fn answer(
    wire: &Wire,
    sample: &SampleOptions,
    store: &Shared,
    stop: &CancellationToken,
) -> Result<(), Failure> {
    let mut machines = Machines::default();
    for machine in sample.machines() {
        let host = start(format!("node {}\n", machine.name), stop).await?;
        let addresses = [machine.ipv4, machine.ipv6];
        let addresses = addresses.iter().filter_map(|text| text.parse().ok()).collect();
        machines.nodes.insert(machine.name, (addresses, host));
    }
    machines.anybody = Some(start("a pod\n".to_owned(), stop).await?);
    // Bound, and not listened at.
    let closed = TcpSocket::new_v4().and_then(|socket| {
        socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
        Ok(socket)
    });
    let closed = closed.map_err(no_port)?;
    machines.closed = closed.local_addr().map_err(no_port)?.port();
    let mut placed = hosts(store, &machines);
    wire.place(placed.clone()).map_err(|e| Failure::new(Exit::Internal, e))?;
    let (wire, store, stop) = (wire.clone(), store.clone(), stop.clone());
    tokio::spawn(async move {
        let _closed = closed;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(PACE) => {}
            }
            let now = hosts(&store, &machines);
            if now != placed {
                // Every place is on loopback, as the first ones were.
                let _ = wire.place(now.clone());
                placed = now;
            }
        }
    });
    Ok(())
}

fn no_port(e: std::io::Error) -> Failure {
    Failure::new(Exit::Blocked, format!("cannot listen on 127.0.0.1: {e}"))
}

async fn start(text: String, stop: &CancellationToken) -> Result<Host, Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(no_port)?;
    let port = listener.local_addr().map_err(no_port)?.port();
    let stop = stop.clone();
    tokio::spawn(async move {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => drop(tokio::spawn(reply(stream, text.clone()))),
                    Err(_) => tokio::time::sleep(PACE).await,
                },
            }
        }
    });
    let address = Ipv4Addr::LOCALHOST.into();
    Ok(Host { address, ports: BTreeMap::new(), others: Some(port) })
}

async fn reply(mut stream: TcpStream, text: String) {
    let mut request = [0; 2_048];
    // Probes that only connect say nothing.
    if !matches!(stream.read(&mut request).await, Ok(1..)) {
        return;
    }
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{text}",
        text.len()
    );
    // Whoever asked may be gone.
    let _ = stream.write_all(answer.as_bytes()).await;
}

/// Prints where each frontend's port really is, until stopped.
///
/// # Errors
/// Nobody reads any more.
pub(super) async fn show_places(
    wire: Option<Wire>,
    paint: Paint,
    stop: CancellationToken,
) -> Result<(), Failure> {
    let Some(wire) = wire else { return Ok(()) };
    let mut shown = BTreeSet::new();
    loop {
        for place in wire.places() {
            let transport = match place.entry.transport {
                Transport::Tcp => "TCP",
                Transport::Udp => "UDP",
            };
            let door = format!("{}:{}/{transport}", place.entry.address, place.entry.port);
            let line = match (place.at, &place.missing) {
                (Some(at), _) => format!("data path: {door} is at {at}"),
                (None, Some(why)) => format!("data path: {door} is nowhere: {why}"),
                (None, None) => continue,
            };
            if shown.insert(line.clone())
                && let Err(gone) = output::print(&format!("{}\n", paint.ink(Ink::Cyan, line)))
            {
                stop.cancel();
                return Err(gone);
            }
        }
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(PACE) => {}
        }
    }
}
