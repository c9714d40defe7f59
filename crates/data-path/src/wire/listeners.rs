//! The listeners: one for each frontend port, opened and closed as rules come and go.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use tokio::net::{TcpListener, UdpSocket};
use tokio::task::{AbortHandle, JoinSet};

use super::{Place, Wire, tcp, udp};
use crate::{EntryPoint, Transport};

/// Addresses of one /16, without the first and the last.
const ADDRESSES: usize = 65_534;

/// All listeners. Dropping it closes them.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    open: BTreeMap<EntryPoint, AbortHandle>,
    tasks: JoinSet<()>,
    /// The loopback address of each frontend, which stays for as long as the emulator runs.
    addresses: BTreeMap<IpAddr, Ipv4Addr>,
    /// The port that an entry point had; it is asked for again.
    ports: BTreeMap<EntryPoint, u16>,
}

impl Listeners {
    /// Listens at the entry points that are wanted, and no longer at others.
    pub(super) async fn open(&mut self, wire: &Wire, wanted: &[EntryPoint]) {
        let most = wire.options.max_listeners;
        let (listened, left_out) = wanted.split_at(wanted.len().min(most));
        let keep: BTreeSet<&EntryPoint> = listened.iter().collect();
        self.open.retain(|entry, task| {
            let kept = keep.contains(entry);
            if !kept {
                task.abort();
            }
            kept
        });
        while self.tasks.try_join_next().is_some() {}
        for entry in listened {
            if !self.open.contains_key(entry) {
                let place = self.listen(wire, *entry).await;
                wire.lock().places.insert(*entry, place);
            }
        }
        let mut state = wire.lock();
        state.places.retain(|entry, _| wanted.contains(entry));
        for entry in left_out {
            let missing = Some(format!("{most} frontend ports are listened at, which is the most"));
            state.places.insert(*entry, Place { entry: *entry, at: None, missing });
        }
    }

    async fn listen(&mut self, wire: &Wire, entry: EntryPoint) -> Place {
        let listening = match self.address(wire.options.network, entry.address) {
            Some(address) => self.bind(wire, entry, address).await,
            None => Err(io::Error::other("no loopback address is left")),
        };
        let (at, missing) = match listening {
            Ok(at) => (Some(at), None),
            Err(error) => (None, Some(format!("listening failed: {error}"))),
        };
        Place { entry, at, missing }
    }

    fn address(&mut self, network: Ipv4Addr, frontend: IpAddr) -> Option<Ipv4Addr> {
        let next = self.addresses.len();
        if let Some(address) = self.addresses.get(&frontend) {
            return Some(*address);
        }
        let at = u32::try_from(next).ok().filter(|_| next < ADDRESSES)?;
        let address = Ipv4Addr::from(u32::from(network).saturating_add(at + 1));
        self.addresses.insert(frontend, address);
        Some(address)
    }

    /// At its own port where that is free and allowed, else at any.
    async fn bind(
        &mut self,
        wire: &Wire,
        entry: EntryPoint,
        address: Ipv4Addr,
    ) -> io::Result<SocketAddr> {
        let first = self.ports.get(&entry).copied().unwrap_or(entry.port);
        let wire = wire.clone();
        let (at, task) = match entry.transport {
            Transport::Tcp => {
                let listener = match TcpListener::bind((address, first)).await {
                    Ok(listener) => listener,
                    Err(_) => TcpListener::bind((address, 0)).await?,
                };
                (listener.local_addr()?, self.tasks.spawn(tcp::serve(wire, listener, entry)))
            }
            Transport::Udp => {
                let socket = match UdpSocket::bind((address, first)).await {
                    Ok(socket) => socket,
                    Err(_) => UdpSocket::bind((address, 0)).await?,
                };
                (socket.local_addr()?, self.tasks.spawn(udp::serve(wire, socket, entry)))
            }
        };
        self.ports.insert(entry, at.port());
        self.open.insert(entry, task);
        Ok(at)
    }
}
