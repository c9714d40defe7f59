//! The emulator's own paths, below `/_/`: looking in, seeding, ordering faults.

use serde_json::{Value, json};

use crate::azure::Azure;
use crate::calls::Call;
use crate::faults::Fault;
use crate::message::{Answer, Request, refusal};
use crate::options::Options;
use crate::path::Route;

/// The list that a body has to be.
fn list<'b>(body: &'b Value, attempt: &str) -> Result<&'b Vec<Value>, String> {
    body.as_array().ok_or_else(|| format!("{attempt} failed: the body is no list; send a list"))
}

impl Azure {
    /// Answers an admin path.
    pub(crate) fn admin(&mut self, request: &Request, path: &str) -> Answer {
        let body = request.body.clone().unwrap_or(Value::Null);
        let done = |body: Value| Answer::new(200, Some(body));
        match (request.method.as_str(), path) {
            ("GET", "/_/state") => done(json!(self.resources())),
            ("GET", "/_/calls") => {
                done(self.calls().iter().map(Call::to_json).collect::<Vec<_>>().into())
            }
            ("GET", "/_/counts") => {
                let (reads, writes) = self.call_counts();
                done(json!({"reads": reads, "writes": writes}))
            }
            ("GET", "/_/gateways") => done(self.gateways_json()),
            ("GET", "/_/options") => done(json!(self.options())),
            ("GET", "/_/traffic") => self.traffic_page(request),
            ("POST", "/_/reset") => {
                self.clear_calls();
                done(json!({}))
            }
            ("POST", "/_/seed") => match list(&body, "seeding resources") {
                Ok(resources) => {
                    self.seed(resources.clone());
                    done(json!({}))
                }
                Err(reason) => Answer::from(refusal(400, "InvalidBody", reason)),
            },
            ("POST", "/_/gateways") => {
                for (id, tables) in body.as_object().into_iter().flatten() {
                    self.seed_gateway(id, tables);
                }
                done(json!({}))
            }
            ("POST", "/_/fail") => self.order_faults(&body),
            ("POST", "/_/options") => self.change_options(&body),
            _ => Answer::from(refusal(404, "NotFound", path)),
        }
    }

    /// Puts these rules in place of all others.
    fn order_faults(&mut self, rules: &Value) -> Answer {
        let read = |rules: &Vec<Value>| rules.iter().map(Fault::from_json).collect();
        match list(rules, "ordering faults").and_then(read) {
            Ok::<Vec<Fault>, String>(faults) => {
                self.clear_faults();
                faults.into_iter().for_each(|fault| self.add_fault(fault));
                Answer::new(200, Some(json!({})))
            }
            Err(reason) => Answer::from(refusal(400, "InvalidFault", reason)),
        }
    }

    /// Changes the settings that the body names and keeps the others.
    fn change_options(&mut self, change: &Value) -> Answer {
        let mut all = json!(self.options());
        for (key, value) in change.as_object().into_iter().flatten() {
            all[key.as_str()] = value.clone();
        }
        match serde_json::from_value::<Options>(all) {
            Ok(options) => {
                *self.options_mut() = options;
                Answer::new(200, Some(json!(self.options())))
            }
            Err(error) => {
                let message = format!("changing the options failed: {error}; correct the body");
                Answer::from(refusal(400, "InvalidOptions", message))
            }
        }
    }

    fn gateways_json(&self) -> Value {
        let tables = self.gateways.iter();
        Value::Object(tables.map(|(id, gateway)| (id.clone(), gateway.to_json())).collect())
    }

    /// `?ip=…&port=…&protocol=…` or `?pod=…`.
    fn traffic_page(&self, request: &Request) -> Answer {
        let asked = Route::parse(&format!(
            "/subscriptions/x?{}",
            request.path.split_once('?').map_or("", |(_, query)| query)
        ));
        let query = asked.map(|route| route.query).unwrap_or_default();
        let get = |key: &str| query.get(key).map_or("", String::as_str);
        if !get("pod").is_empty() {
            let addresses = self.egress(get("pod"));
            return Answer::new(200, Some(json!({"pod": get("pod"), "egress": addresses})));
        }
        let protocol = if get("protocol").is_empty() { "Tcp" } else { get("protocol") };
        let Ok(port) = get("port").parse::<u16>() else {
            let message = "ask with ?ip=ADDRESS&port=NUMBER&protocol=Tcp, or with ?pod=ADDRESS";
            return Answer::from(refusal(400, "InvalidQuery", message));
        };
        let found = self.traffic(get("ip"), protocol, port);
        Answer::new(200, Some(found.map_or(json!({"backends": []}), |traffic| traffic.to_json())))
    }
}
