//! What a run found, for people and programs.

use crate::exchange::Exchange;
use serde::Serialize;
use std::collections::BTreeMap;

/// What a run found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The run's id.
    pub run: String,
    /// The resource group.
    pub group: String,
    /// The region.
    pub location: String,
    /// Assumptions that hold.
    pub confirmed: usize,
    /// Assumptions that do not.
    pub differs: usize,
    /// Assumptions that could not be tried.
    pub not_tried: usize,
    /// Whether the run was stopped before its end.
    pub interrupted: bool,
    /// Requests sent.
    pub calls: usize,
    /// Each assumption.
    pub assumptions: Vec<Line>,
    /// How long requests took to their end.
    pub latencies: Vec<Latency>,
    /// What could not be deleted.
    pub left: Vec<Left>,
}

/// One assumption.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// Its name.
    pub id: &'static str,
    /// What is assumed.
    pub assumed: &'static str,
    /// Where it stands.
    pub facts: &'static str,
    /// `confirmed`, `differs` or `not tried`.
    pub verdict: &'static str,
    /// What there is to add.
    pub why: Option<String>,
    /// The calls that decide it.
    pub seen: Vec<Shown>,
}

/// A call, without its bodies.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shown {
    /// Method and resource.
    pub request: String,
    /// `If-Match`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_match: Option<String>,
    /// `If-None-Match`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_none_match: Option<String>,
    /// HTTP status; 0 where there was no answer.
    pub status: u16,
    /// The error's code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The error's message, or why there was no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The headers that the controller reads.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

impl Shown {
    pub(crate) fn of(exchange: &Exchange) -> Self {
        let Exchange { request, answer, .. } = exchange;
        let message = Some(answer.message()).filter(|message| !message.is_empty());
        Self {
            request: request.short(),
            if_match: request.if_match.clone(),
            if_none_match: request.if_none_match.clone(),
            status: answer.status,
            code: answer.code().map(str::to_owned),
            message: message.map(str::to_owned).or_else(|| answer.fault.clone()),
            headers: answer.headers.clone(),
        }
    }
}

/// How long requests of a method and kind took, operations included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Latency {
    /// Method and kind.
    pub request: String,
    /// How many there were.
    pub count: usize,
    /// Half took no longer, in milliseconds.
    pub p50_ms: u64,
    /// Nine in ten took no longer.
    pub p90_ms: u64,
    /// None took longer.
    pub longest_ms: u64,
}

/// Something that could not be deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Left {
    /// Its resource id.
    pub id: String,
    /// Why.
    pub why: String,
}

impl Left {
    /// The command that deletes it.
    #[must_use]
    pub fn command(&self) -> String {
        format!("az resource delete --ids {}", self.id)
    }
}
