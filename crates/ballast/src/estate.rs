//! An Azure that is a file: a snapshot of resources, or what a cloud config takes for granted.

use crate::exit::{Exit, Failure};
use arm::{Answer, PageStep, Pages, Reply, Target};
use azure_emulator::{Azure, Options, Switch};
use model::policy::PoolKind;
use model::world::{Azure as Facts, Need};
use model::{Policy, World};
use serde_json::{Value, json};
use std::path::Path;

/// Reads a snapshot: a JSON list of resources, or an answer with one under `value`.
///
/// # Errors
/// The file cannot be read, or holds something else.
pub fn read_snapshot(path: &Path) -> Result<Vec<Value>, Failure> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|e| {
        Failure::new(Exit::Input, format!("cannot read the snapshot {shown}: {e}. Check the path"))
    })?;
    parse_snapshot(path, &text)
}

/// Reads the text of a snapshot.
///
/// # Errors
/// It holds something else.
pub fn parse_snapshot(path: &Path, text: &str) -> Result<Vec<Value>, Failure> {
    let shown = path.display();
    let value: Value = serde_json::from_str(text).map_err(|e| {
        let advice = "It has to be a JSON list of resources, as `az resource show` prints one";
        Failure::new(Exit::Input, format!("the snapshot {shown} is no JSON: {e}. {advice}"))
    })?;
    let list = match value {
        Value::Array(list) => Some(list),
        Value::Object(mut object) => match object.remove("value") {
            Some(Value::Array(list)) => Some(list),
            _ => None,
        },
        _ => None,
    };
    let list = list.filter(|l| l.iter().all(|r| r.get("id").is_some_and(Value::is_string)));
    list.ok_or_else(|| {
        let advice = "Every element needs an `id`";
        Failure::new(Exit::Input, format!("the snapshot {shown} is no list of resources. {advice}"))
    })
}

/// Answers what planning has to read, from resources that stand in a file.
#[derive(Debug)]
pub struct Estate {
    azure: Azure,
}

impl Estate {
    /// From a snapshot.
    #[must_use]
    pub fn of(resources: Vec<Value>, policy: &Policy) -> Self {
        let options = Options {
            location: policy.location.to_string(),
            log_bodies: Switch::Off,
            ..Options::default()
        };
        let mut azure = Azure::new(options);
        azure.seed(resources);
        Self { azure }
    }

    /// What the cloud config takes for granted, and nothing else: the virtual network with its
    /// subnet, and the security group.
    #[must_use]
    pub fn assumed(policy: &Policy) -> Self {
        let location = &*policy.location;
        let mut resources = Vec::new();
        if !policy.network_name.is_empty() {
            resources.push(json!({"id": policy.network().as_str(), "location": location,
                "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/8", "fd00::/16"]}}}));
        }
        if !policy.network_name.is_empty() && !policy.subnet_name.is_empty() {
            let id = policy.subnet_id(&policy.subnet_name);
            // A route table, so that outbound connectivity counts as unknown.
            let routes =
                policy.network_id(&policy.network_group, "routeTables", &policy.network_name);
            resources.push(json!({"id": id.as_str(), "properties": {
                "addressPrefixes": ["10.0.0.0/8", "fd00::/16"],
                "routeTable": {"id": routes.as_str()}}}));
        }
        if !policy.security_group_name.is_empty() {
            resources.push(json!({"id": policy.security_group_id().as_str(),
                "location": location, "properties": {"securityRules": []}}));
        }
        if policy.pools == PoolKind::PodIp {
            resources.push(json!({"id": policy.gateway_id().as_str(), "location": location,
                "sku": {"name": "Standard", "tier": "Regional"},
                "properties": {"virtualNetwork": {"id": policy.network().as_str()}}}));
        }
        Self::of(resources, policy)
    }

    /// Reads what planning needs, as the controller would.
    pub fn read(&mut self, need: &Need, policy: &Policy, facts: &mut Facts) {
        let mut request = observe::need::request(need, policy, "offline");
        let mut pages = Pages::start(&request);
        let mut gathering = observe::azure::Gathering::default();
        loop {
            let (Target::Path(path) | Target::Url(path)) = &request.target;
            let asked = azure_emulator::Request {
                body: request.body.as_ref().map(|body| body.tree().into_owned()),
                ..azure_emulator::Request::new(request.method.name(), path)
            };
            let answer = self.azure.handle(asked, 0);
            let missing = answer.status == 404;
            let body = answer.body.map(Into::into);
            let reply = Reply { status: answer.status, body, ..Reply::default() };
            match pages.advance(Answer::Reply(Box::new(reply))) {
                PageStep::Next { items, request: next } => {
                    gathering.take(facts, policy, need, &items);
                    request = next;
                }
                PageStep::Done(items) => {
                    gathering.take(facts, policy, need, &items);
                    gathering.finish(facts, need);
                    return;
                }
                PageStep::Failed(_) if missing => {
                    observe::azure::apply_missing(facts, need);
                    return;
                }
                PageStep::Failed(error) => {
                    observe::azure::apply_unreadable(facts, need, &error.to_string());
                    return;
                }
            }
        }
    }

    /// Reads until planning, followed to its end, needs nothing more.
    pub fn fill(&mut self, world: &mut World, policy: &Policy) {
        // Each round reads something new; a need that comes back although it was read would go on
        // for ever, and is left to the report.
        for _ in 0..32 {
            let forecast = explain::forecast::forecast(world, policy);
            let needs: Vec<Need> =
                forecast.report.needs.iter().chain(&forecast.last.needs).cloned().collect();
            if needs.is_empty() {
                return;
            }
            for need in needs {
                self.read(&need, policy, &mut world.azure);
            }
        }
    }
}
