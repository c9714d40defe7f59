//! A controller that is blind for the idle timeouts of rules that stand: it takes them for written.

use crate::check::form::parts;
use arm::{Answer, Item};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

const KEY: &str = "idleTimeoutInMinutes";

/// What was asked for last, by the name of the rule.
#[derive(Clone, Debug, Default)]
pub(super) struct Timeouts(BTreeMap<String, Value>);

impl Timeouts {
    /// Leaves the timeouts of rules that stand as they are, and remembers what was asked for.
    pub fn keep(&mut self, body: &mut Value, standing: Option<&Value>) {
        let standing = standing.map(|s| parts(s, "loadBalancingRules")).unwrap_or_default();
        each_rule(body, |name, minutes| {
            self.0.insert(name.to_owned(), minutes.clone());
            if let Some(rule) = standing.get(name) {
                *minutes = rule["properties"][KEY].clone();
            }
        });
    }

    /// Shows what was asked for in place of what is.
    pub fn show(&self, answer: &mut Answer) {
        let Answer::Reply(reply) = answer else { return };
        let one = reply.body.iter_mut();
        one.for_each(|body| self.show_in(Arc::make_mut(body)));
        for item in reply.page.iter_mut().flat_map(|page| &mut page.items) {
            if let Item::Parsed(resource) = item {
                self.show_in(Arc::make_mut(resource));
            }
        }
    }

    fn show_in(&self, resource: &mut Value) {
        each_rule(resource, |name, minutes| {
            if let Some(asked) = self.0.get(name) {
                asked.clone_into(minutes);
            }
        });
    }
}

fn each_rule(resource: &mut Value, mut change: impl FnMut(&str, &mut Value)) {
    let rules =
        resource.pointer_mut("/properties/loadBalancingRules").and_then(Value::as_array_mut);
    for rule in rules.into_iter().flatten() {
        let name = rule["name"].as_str().unwrap_or("").to_owned();
        if let Some(minutes) = rule.pointer_mut("/properties/idleTimeoutInMinutes") {
            change(&name, minutes);
        }
    }
}
