//! The rules of [`plan::ask::findings`] as a `ValidatingAdmissionPolicy`, so that the API server
//! refuses what planning would refuse.
//!
//! # Guarantees
//! For every Service that is created: a validation of the denying policy is false if and only if
//! [`plan::ask::read`] (or its like for the container load balancer) refuses the Service. What
//! depends on other objects (limits, names that exist in Azure) is not in it, nor whether more than
//! 500 target ports of a container load balancer differ. For every Service that is changed the
//! same, and the change itself must be possible: planning does not see the Service as it was
//! before.
//!
//! No macro (`all`, `filter`) over ports, or over the entries of an annotation, stands in another
//! such macro, unless there are few entries: the API server bounds the cost of an evaluation, and a
//! Service beyond the bound passes. To look into a list by `in` or `indexOf` costs its length.
//!
//! # Assumptions
//! The API server's expressions have the functions for strings, addresses and ranges: Kubernetes
//! 1.31 and later.

mod cel;
mod container;
mod nodes;
mod notes;
mod probes;
#[cfg(test)]
mod tests;
mod variables;

use model::Policy;
use model::policy::BalancerSku;
use plan::ask::annotation::{self, PREFIX};
use plan::ask::findings::{FindingRule, INVALID_IDLE_TIMEOUT};

/// What the API server does where a validation is false.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It refuses the Service.
    Deny,
    /// It takes the Service and warns.
    Warn,
}

/// A policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmissionPolicy {
    /// What it does.
    pub action: Action,
    /// Values that the validations share, by name, in the order in which they are made.
    pub variables: Vec<(&'static str, String)>,
    /// What must be true of a Service.
    pub validations: Vec<Validation>,
}

/// What must be true of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validation {
    /// Name of the rule.
    pub rule: &'static str,
    /// The expression (CEL); `object` is the Service, `oldObject` what it was before.
    pub expression: String,
    /// What is said where it is false.
    pub message: String,
}

impl Validation {
    fn new(rule: &FindingRule, expression: String) -> Self {
        let (key, _) = rule.example();
        let key = match key.strip_prefix("port_80_") {
            Some(rest) => format!("{PREFIX}port_NUMBER_{rest}"),
            None if key.starts_with("spec.") => key.to_owned(),
            None => annotation::full(key),
        };
        Self::about(&key, rule, expression)
    }

    /// The idle timeout is a whole number of minutes up to this one.
    fn idle_timeout(longest: u64) -> Self {
        let key = "azure-load-balancer-tcp-idle-timeout";
        let valid = cel::is_whole(&cel::text(key), 4, longest);
        Self::new(&INVALID_IDLE_TIMEOUT, format!("!{} || {valid}", cel::present(key)))
    }

    fn about(key: &str, rule: &FindingRule, expression: String) -> Self {
        let message = format!("{}: {key}: {}", rule.name, rule.general());
        Self { rule: rule.name, expression, message }
    }
}

/// The policies for clusters with such a cloud config: one that denies, one that warns.
#[must_use]
pub fn policies(policy: &Policy) -> [AdmissionPolicy; 2] {
    let deny = match policy.sku {
        BalancerSku::Service => container::validations(),
        BalancerSku::Basic | BalancerSku::Standard => nodes::validations(policy),
    };
    [
        AdmissionPolicy {
            action: Action::Deny,
            variables: variables::all(policy),
            validations: deny,
        },
        AdmissionPolicy {
            action: Action::Warn,
            variables: vec![cel::annotations()],
            validations: notes::validations(policy),
        },
    ]
}
