//! Clients of fifty Services that move to container load balancers and back: real processes, real
//! sockets, every connection counted. A client keeps to its address for as long as the Service's
//! status tells it; then it takes one that the status tells.

use crate::support::{Emulators, http, node_name, wait_for};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

const SERVICES: usize = 50;
/// How long a client rests between two connections, and how old what it knows of the status is.
const PAUSE: Duration = Duration::from_millis(200);

/// What clients know: the addresses that each Service's status tells, and where those really are.
#[derive(Debug, Default)]
struct Sight {
    told: BTreeMap<String, Vec<String>>,
    places: BTreeMap<String, SocketAddr>,
}

impl Sight {
    fn of(kube: &str, azure: &str) -> Self {
        let mut sight = Self::default();
        let (_, services) = http(kube, "GET", "/api/v1/namespaces/default/services", None);
        for service in services["items"].as_array().into_iter().flatten() {
            let name = service["metadata"]["name"].as_str().unwrap().to_owned();
            let ingress = service["status"]["loadBalancer"]["ingress"].as_array();
            let told = ingress.into_iter().flatten().filter_map(|entry| entry["ip"].as_str());
            sight.told.insert(name, told.map(str::to_owned).collect());
        }
        let (_, view) = http(azure, "GET", "/_/data-path", None);
        for frontend in view["frontends"].as_array().into_iter().flatten() {
            let at = frontend["at"].as_str().and_then(|at| at.parse().ok());
            if let (Some(address), Some(at)) = (frontend["address"].as_str(), at) {
                sight.places.insert(address.to_owned(), at);
            }
        }
        sight
    }

    /// The addresses of a Service.
    fn told(&self, name: &str) -> &[String] {
        self.told.get(name).map_or(&[], Vec::as_slice)
    }
}

/// What clients met with.
#[derive(Debug, Default)]
struct Tally {
    /// Connections that were answered.
    served: AtomicUsize,
    /// Connections that were not taken or answered.
    refused: AtomicUsize,
    /// Times at which a status told no address.
    untold: AtomicUsize,
    stop: AtomicBool,
}

impl Tally {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}

/// Nodes and Pods are all here, and answer.
async fn serve(listener: TcpListener) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        tokio::spawn(async move {
            let mut stream = BufReader::new(stream);
            let mut line = String::new();
            while let Ok(1..) = stream.read_line(&mut line).await {
                if stream.get_mut().write_all(b"pong\n").await.is_err() {
                    return;
                }
                line.clear();
            }
        });
    }
}

/// One connection, and one answer.
async fn ask(at: SocketAddr) -> bool {
    let Ok(stream) = TcpStream::connect(at).await else { return false };
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.get_mut().write_all(b"ping\n").await.is_ok()
        && stream.read_line(&mut line).await.is_ok()
        && line == "pong\n"
}

/// A client of one Service.
async fn follow(name: String, sight: Arc<Mutex<Sight>>, tally: Arc<Tally>) {
    let mut own: Option<String> = None;
    while !tally.is_over() {
        let at = {
            let sight = sight.lock().unwrap();
            let told = sight.told(&name);
            if !own.as_ref().is_some_and(|own| told.contains(own)) {
                own = told.first().cloned();
            }
            own.as_ref().map(|own| sight.places.get(own).copied())
        };
        let served = match at.flatten() {
            Some(at) => ask(at).await,
            None => false,
        };
        let count = match (own.is_some(), served) {
            (_, true) => &tally.served,
            (true, false) => &tally.refused,
            (false, false) => &tally.untold,
        };
        count.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(PAUSE).await;
    }
}

fn name(number: usize) -> String {
    format!("web-{number:02}")
}

/// Fifty Services over nodes, each with a Pod on one of them.
fn estate() -> Emulators {
    let emulators =
        Emulators::start_with(&["--service-gateway", "--data-path", "--data-path-second", "100"]);
    emulators.configure(&json!({"loadBalancerSku": "standard", "serviceGatewayEnabled": false,
        "loadBalancerBackendPoolConfigurationType": "nodeIP",
        "layoutMigration": {"drainSeconds": 5}}));
    for number in 0..SERVICES {
        emulators.create_service(&name(number));
        let address = format!("10.244.0.{}", 10 + number);
        emulators.create_slice(&name(number), &name(number), &address, &node_name(0));
    }
    emulators
}

/// The ids of all that stands in Azure, and the SKUs of the load balancers.
fn standing(emulators: &Emulators) -> (BTreeSet<String>, BTreeSet<String>) {
    let all = emulators.resources();
    let ids = all.iter().filter_map(|r| r["id"].as_str()).map(str::to_lowercase).collect();
    let balancers = all.iter().filter(|r| r["type"] == "Microsoft.Network/loadBalancers");
    let skus = balancers.filter_map(|b| b["sku"]["name"].as_str()).map(str::to_owned).collect();
    (ids, skus)
}

#[test]
fn fifty_services_move_there_and_back_and_no_connection_is_refused() {
    let runtime = Runtime::new().unwrap();
    let emulators = estate();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let here = json!({"address": "127.0.0.1", "others": listener.local_addr().unwrap().port()});
    runtime.spawn(serve(listener));
    let body = json!({ "anybody": here });
    assert_eq!(http(&emulators.azure, "POST", "/_/data-path/hosts", Some(&body)).0, 200);
    let (controller, _) = emulators.controller();
    let look = || Sight::of(&emulators.kube, &emulators.azure);
    let addresses = || -> Vec<String> {
        let sight = look();
        (0..SERVICES).flat_map(|number| sight.told(&name(number)).to_vec()).collect()
    };
    wait_for("all addresses", || (addresses().len() == SERVICES).then_some(()));
    assert_eq!(controller.terminate(), 0);
    let (before, (ids, _)) = (addresses(), standing(&emulators));
    wait_for("answers at all addresses", || {
        let places = look().places;
        let is_served = |ip: &String| places.get(ip).is_some_and(|at| runtime.block_on(ask(*at)));
        before.iter().all(is_served).then_some(())
    });

    let (tally, sight) = (Arc::new(Tally::default()), Arc::new(Mutex::new(look())));
    let (kube, azure) = (emulators.kube.clone(), emulators.azure.clone());
    let (seen, watched) = (Arc::clone(&sight), Arc::clone(&tally));
    let looking = std::thread::spawn(move || {
        while !watched.is_over() {
            let now = Sight::of(&kube, &azure);
            *seen.lock().unwrap() = now;
            std::thread::sleep(PAUSE);
        }
    });
    let client = |number| follow(name(number), Arc::clone(&sight), Arc::clone(&tally));
    let clients: Vec<_> = (0..SERVICES).map(|number| runtime.spawn(client(number))).collect();

    let journal = format!("--journal={}", emulators.path("moves.jsonl").display());
    let migrate = |to: &str| {
        let words = ["migrate", to, "--keep-both=3s", "--yes", "--leader-elect=false", &journal];
        let (code, out, err) = emulators.run(&words);
        assert_eq!(code, 0, "{out}{err}");
    };
    migrate("--to=container-load-balancer");
    let there = addresses();
    assert!(there.len() == SERVICES && there.iter().all(|ip| !before.contains(ip)), "{there:?}");
    assert_eq!(standing(&emulators).1, BTreeSet::from(["Service".to_owned()]));
    emulators.configure(&json!({"loadBalancerSku": "service", "serviceGatewayEnabled": true,
        "loadBalancerBackendPoolConfigurationType": "podIP"}));
    migrate("--to=standard");
    let back = addresses();
    assert!(back.len() == SERVICES && back.iter().all(|ip| !there.contains(ip)), "{back:?}");
    assert_eq!(standing(&emulators).0, ids, "nothing is left over");

    tally.stop.store(true, Ordering::SeqCst);
    looking.join().unwrap();
    runtime.block_on(async {
        for client in clients {
            client.await.unwrap();
        }
    });
    println!("{tally:?}");
    let count = |what: &AtomicUsize| what.load(Ordering::SeqCst);
    assert_eq!((count(&tally.refused), count(&tally.untold)), (0, 0), "{tally:?}");
    assert!(count(&tally.served) > 20 * SERVICES, "{tally:?}");
}
