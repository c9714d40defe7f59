//! The listeners: one for each frontend port, opened and closed as rules come and go.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use tokio::net::{TcpListener, UdpSocket};
use tokio::task::{AbortHandle, JoinSet};

use super::{Place, Wire, tcp, udp};
use crate::data_path::{Door, Transport};

/// Addresses of one /16, without the first and the last.
const ADDRESSES: usize = 65_534;

/// All listeners. Dropping it closes them.
#[derive(Debug, Default)]
pub(super) struct Doors {
    open: BTreeMap<Door, AbortHandle>,
    tasks: JoinSet<()>,
    /// The loopback address of each frontend, which stays for as long as the emulator runs.
    addresses: BTreeMap<IpAddr, Ipv4Addr>,
    /// The port that a door had; it is asked for again.
    ports: BTreeMap<Door, u16>,
}

impl Doors {
    /// Opens the doors that are wanted and closes the others.
    pub(super) async fn open(&mut self, wire: &Wire, wanted: &[Door]) {
        let most = wire.options.most_doors;
        let (listened, left_out) = wanted.split_at(wanted.len().min(most));
        let keep: BTreeSet<&Door> = listened.iter().collect();
        self.open.retain(|door, task| {
            let kept = keep.contains(door);
            if !kept {
                task.abort();
            }
            kept
        });
        while self.tasks.try_join_next().is_some() {}
        for door in listened {
            if !self.open.contains_key(door) {
                let place = self.listen(wire, *door).await;
                wire.lock().places.insert(*door, place);
            }
        }
        let mut state = wire.lock();
        state.places.retain(|door, _| wanted.contains(door));
        for door in left_out {
            let missing = Some(format!("{most} frontend ports are listened at, which is the most"));
            state.places.insert(*door, Place { door: *door, at: None, missing });
        }
    }

    async fn listen(&mut self, wire: &Wire, door: Door) -> Place {
        let listening = match self.address(wire.options.network, door.address) {
            Some(address) => self.bind(wire, door, address).await,
            None => Err(io::Error::other("no loopback address is left")),
        };
        let (at, missing) = match listening {
            Ok(at) => (Some(at), None),
            Err(error) => (None, Some(format!("listening failed: {error}"))),
        };
        Place { door, at, missing }
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

    /// At the door's own port where that is free and allowed, else at any.
    async fn bind(&mut self, wire: &Wire, door: Door, address: Ipv4Addr) -> io::Result<SocketAddr> {
        let first = self.ports.get(&door).copied().unwrap_or(door.port);
        let wire = wire.clone();
        let (at, task) = match door.transport {
            Transport::Tcp => {
                let listener = match TcpListener::bind((address, first)).await {
                    Ok(listener) => listener,
                    Err(_) => TcpListener::bind((address, 0)).await?,
                };
                (listener.local_addr()?, self.tasks.spawn(tcp::serve(wire, listener, door)))
            }
            Transport::Udp => {
                let socket = match UdpSocket::bind((address, first)).await {
                    Ok(socket) => socket,
                    Err(_) => UdpSocket::bind((address, 0)).await?,
                };
                (socket.local_addr()?, self.tasks.spawn(udp::serve(wire, socket, door)))
            }
        };
        self.ports.insert(door, at.port());
        self.open.insert(door, task);
        Ok(at)
    }
}
