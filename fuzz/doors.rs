//! The doors through which bytes from outside come in. A door takes any bytes; it panics when what
//! lies behind does, or when what was read is not what it should be. `wire.rs` has those at the
//! sockets.
//!
//! `fuzz/targets` opens them to .ci/fuzz, `crates/sim/tests/it/decoders.rs` to `cargo test`.

use arm::body;
use arm::{Answer, Method, Operation, PageStep, Pages, Reply, Request, Step, Target};
use azure_emulator::{Azure, SampleGateway, SampleOptions, sample_cloud_config, sample_estate};
use control::Options;
use kube_emulator::{Store, StoreOptions};
use model::{Policy, World};
use observe::{Interner, KubernetesFact, Listing, kubernetes};
use serde_json::{Value, json};
use sim::{Config, Laboratory};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::LazyLock;

/// A resource's body from ARM: what is read and written again reads the same.
pub fn arm_body(bytes: &[u8]) {
    let Ok(body) = serde_json::from_slice::<Value>(bytes) else { return };
    round(&body, body::read_load_balancer, body::write_load_balancer);
    round(&body, body::read_public_ip, body::write_public_ip);
    round(&body, body::read_security_group, body::write_security_group);
    round(&body, body::read_private_link_service, body::write_private_link_service);
    round(&body, body::read_nat_gateway, body::write_nat_gateway);
    round(&body, body::read_pool_member, body::write_pool_member);
    round(&body, body::read_subnet, body::write_subnet);
    let _ = body::read_virtual_machine(&body);
    let _ = body::read_gateway_service(&body);
    let _ = body::read_provisioning(&body);
    let items = body.as_array().cloned().unwrap_or_else(|| vec![body.clone()]);
    let _ = body::read_locations(&items);
}

fn round<T: PartialEq + Debug, E>(
    body: &Value,
    read: impl Fn(&Value) -> Result<T, E>,
    write: impl Fn(&T) -> Value,
) {
    let Ok(first) = read(body) else { return };
    let once = write(&first);
    let Ok(second) = read(&once) else { panic!("what was written cannot be read: {once}") };
    let twice = write(&second);
    assert_eq!(once, twice, "what is written changes with each reading of {body}");
}

/// An answer of ARM: its status and body, taken as a page of a list and as part of an operation.
pub fn arm_answer(bytes: &[u8]) {
    let Some((status, body)) = bytes.split_at_checked(2) else { return };
    let text = String::from_utf8_lossy(body);
    let reply = Reply {
        status: 100 + u16::from_le_bytes([status[0], status[1]]) % 500,
        async_operation: Some(text.lines().next().unwrap_or_default().to_owned()),
        location: Some(text.lines().last().unwrap_or_default().to_owned()),
        body: serde_json::from_slice::<Value>(body).ok().map(Into::into),
        ..Reply::default()
    };
    let request = Request {
        method: Method::Put,
        target: Target::Path("/subscriptions/s/resourceGroups/g".to_owned()),
        condition: arm::Condition::None,
        body: Some(json!({}).into()),
        correlation: "c".to_owned(),
    };
    let answer = Answer::Reply(Box::new(reply));
    if let PageStep::Next { request, .. } = Pages::start(&request).advance(answer.clone()) {
        assert_eq!(request.method, Method::Get, "a page is read");
    }
    let mut operation = Operation::start(&request);
    for _ in 0..3 {
        if let Step::Done { .. } | Step::Failed(_) = operation.advance(&answer) {
            break;
        }
    }
}

/// An object of Kubernetes: it is read the same each time, or refused.
pub fn kubernetes_object(bytes: &[u8]) {
    let Ok(object) = serde_json::from_slice::<Value>(bytes) else { return };
    let policy = policy();
    let read = || {
        let mut interner = Interner::default();
        let classes = BTreeSet::from(["ours".to_owned()]);
        format!(
            "{:?} {:?} {:?} {:?} {:?} {:?}",
            kubernetes::service_from_value(&object, &classes, &mut interner),
            kubernetes::node_from_value(&object, &policy.group, &mut interner),
            kubernetes::slice_from_value(&object, &mut interner),
            kubernetes::pod_from_value(&object, &mut interner),
            kubernetes::gated_pod_from_value(&object, &mut interner),
            kubernetes::namespace_from_value(&object, &mut interner),
        )
    };
    assert_eq!(read(), read());
}

/// The secret of the cloud configs in the corpus: no error and no warning may tell it.
pub const SECRET: &str = "hunter2-hunter2";

/// A cloud config: it is read, or every mistake has a text, and none has the secret in it.
pub fn cloud_config(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let environment = BTreeMap::new();
    let sources =
        observe::config::Sources { text: &text, cluster: "kubernetes", environment: &environment };
    let said: Vec<String> = match observe::config::read(&sources) {
        Ok(config) => {
            assert!(!format!("{config:?}").contains(SECRET), "the settings print the secret");
            config.warnings
        }
        Err(errors) => {
            assert!(!errors.is_empty(), "a config is refused without a reason");
            errors.iter().map(ToString::to_string).collect()
        }
    };
    for text in said {
        assert!(!text.is_empty() && !text.contains(SECRET), "told: {text}");
    }
}

/// The settings of the sample.
pub(crate) fn policy() -> &'static Policy {
    config().policy()
}

fn config() -> &'static Config {
    static CONFIG: LazyLock<Config> =
        LazyLock::new(|| Config::new(sample_cloud_config("http://127.0.0.1:1", &sample())));
    &CONFIG
}

pub(crate) fn sample() -> SampleOptions {
    SampleOptions {
        subscription: "00000000-0000-0000-0000-000000000001".to_owned(),
        group: "rg".to_owned(),
        location: "eastus".to_owned(),
        machines: 2,
        gateway: SampleGateway::None,
    }
}

/// A cluster with a Service that is programmed.
#[derive(Debug)]
pub struct Settled {
    world: World,
    policy: Policy,
}

impl Default for Settled {
    fn default() -> Self {
        Self::new()
    }
}

impl Settled {
    /// Builds it.
    #[must_use]
    pub fn new() -> Self {
        let mut azure = Azure::new(azure_emulator::Options::default());
        azure.seed(sample_estate(&sample()));
        let mut store = Store::new(StoreOptions::default());
        for object in [
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "vmss000000"},
                "status": {"addresses": [{"type": "InternalIP", "address": "10.224.0.4"}]}}),
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
                "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}}),
        ] {
            if let Err(refused) = store.create(object, 0) {
                panic!("the sample is refused: {refused:?}");
            }
        }
        let mut lab = Laboratory::new(store, azure, config().clone(), Options::default());
        assert!(lab.settle(60_000), "the sample does not settle");
        Self { world: lab.controller().world().clone(), policy: policy().clone() }
    }
}

/// A Service that changed to anything at all: planning has an answer, always the same, that breaks
/// no rule.
pub fn service_plan(settled: &Settled, bytes: &[u8]) {
    let Ok(object) = serde_json::from_slice::<Value>(bytes) else { return };
    let read = kubernetes::service_from_value(&object, &BTreeSet::new(), &mut Interner::default());
    let Ok(service) = read else { return };
    let mut world = settled.world.clone();
    let mut tell = |fact| {
        observe::apply(&mut world.kubernetes, &mut Listing::default(), fact);
    };
    // Of one name there is one Service.
    let known = settled.world.kubernetes.services.values();
    for gone in known.filter(|known| known.name == service.name && known.uid != service.uid) {
        tell(KubernetesFact::ServiceGone(gone.uid.clone()));
    }
    tell(KubernetesFact::Service(Box::new(service)));
    let (planned, report) = plan::plan(&world, &settled.policy);
    assert_eq!((&planned, &report), (&plan::plan(&world, &settled.policy).0, &report));
    let breaches = plan_check::check(&world, &settled.policy, &planned);
    assert!(breaches.is_empty(), "{breaches:?} for {object}");
}

/// A request to the emulated Azure: a line with method and path, then the body.
pub fn azure_request(bytes: &[u8]) {
    let Some((method, path, body)) = taken_apart(bytes) else { return };
    let mut azure = Azure::new(azure_emulator::Options::default());
    azure.seed(sample_estate(&sample()));
    let request = azure_emulator::Request {
        method: method.to_ascii_uppercase(),
        path,
        body: serde_json::from_slice(&body).ok(),
        ..azure_emulator::Request::default()
    };
    let answer = azure.handle(request, 1_000);
    assert!((200..600).contains(&answer.status), "{answer:?}");
}

/// A request to the emulated API server: a line with method and path, then the body.
pub fn kubernetes_request(bytes: &[u8]) {
    let Some((method, path, body)) = taken_apart(bytes) else { return };
    let mut request = match method.as_str() {
        "POST" => kube_emulator::Request::post(&path, &Value::Null),
        "PUT" => kube_emulator::Request::put(&path, &Value::Null),
        "PATCH" => {
            kube_emulator::Request::patch(&path, "application/merge-patch+json", &Value::Null)
        }
        "APPLY" => {
            kube_emulator::Request::patch(&path, "application/apply-patch+yaml", &Value::Null)
        }
        "DELETE" => kube_emulator::Request::delete(&path),
        _ => kube_emulator::Request::get(&path),
    };
    request.body = body;
    let mut store = Store::new(StoreOptions::default());
    let web = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}});
    assert!(store.create(web, 0).is_ok());
    let response = store.handle(&request, 1_000);
    assert!((200..600).contains(&response.code), "{}", response.code);
}

fn taken_apart(bytes: &[u8]) -> Option<(String, String, Vec<u8>)> {
    let end = bytes.iter().position(|b| *b == b'\n').unwrap_or(bytes.len());
    let line = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let (method, path) = line.split_once(' ')?;
    let body = bytes.get(end + 1..).unwrap_or_default().to_vec();
    Some((method.to_owned(), path.to_owned(), body))
}
