//! Health Probe Status, a metric of Azure Monitor: which backends of a load balancer answer its
//! health probes.
//!
//! Source: Azure documentation, "Azure Load Balancer monitoring data reference"
//! (`DipAvailability`, its dimensions and its grain of a minute) and "Metrics - List" of the Azure
//! Monitor REST reference (query, `$filter`, `top`, form of the answer). Standard load balancers
//! have it; its value goes from 0 to 100.

use crate::exchange::{Condition, Method, Reply, Request, Target};
use crate::page::JsonItem;
use crate::path::{escaped, query_escaped};
use model::backends::ProbeState;
use model::{Protocol, ResourceId};
use serde_json::Value;
use std::borrow::Cow;
use std::net::IpAddr;

/// The oldest version that is not a preview; every cloud has it.
const API: &str = "2018-01-01";
/// Series in one answer. Azure returns ten where nothing is said.
const TOP: u32 = 10_000;

/// What the probes found of one backend behind one port of one frontend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// The frontend's address.
    pub frontend: IpAddr,
    /// The frontend's port; 0 where the rule takes all.
    pub port: u16,
    /// The rule's protocol, where the series names TCP or UDP.
    pub protocol: Option<Protocol>,
    /// The backend's address.
    pub backend: IpAddr,
    /// One a minute, the oldest first; minutes without a value are left out.
    pub points: Vec<Point>,
}

/// One minute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// Its beginning, as Azure wrote it (RFC 3339).
    pub time: String,
    /// What was found in it.
    pub state: ProbeState,
}

/// Asks what the probes of some frontends found between two times, as RFC 3339 writes them.
#[must_use]
pub fn request(
    balancer: &ResourceId,
    frontends: &[IpAddr],
    (from, to): (&str, &str),
    correlation: &str,
) -> Request {
    let addresses: Vec<String> =
        frontends.iter().map(|address| format!("FrontendIPAddress eq '{address}'")).collect();
    let filter = format!(
        "{} and FrontendPort eq '*' and ProtocolType eq '*' and BackendIPAddress eq '*'",
        addresses.join(" or ")
    );
    let path = format!(
        "{}/providers/Microsoft.Insights/metrics?api-version={API}&metricnames=DipAvailability\
         &timespan={}&interval=PT1M&aggregation=Average&top={TOP}&$filter={}",
        escaped(balancer.as_str()),
        query_escaped(&format!("{from}/{to}")),
        query_escaped(&filter),
    );
    Request {
        method: Method::Get,
        target: Target::Path(path),
        condition: Condition::None,
        body: None,
        correlation: correlation.to_owned(),
    }
}

/// What the answer says.
///
/// # Errors
/// It is no answer of Azure Monitor, or the metric could not be read.
pub fn read(reply: &Reply) -> Result<Vec<Series>, String> {
    // An object with a list "value" comes as a page of a list.
    let metrics: Vec<Cow<'_, Value>> = match (&reply.page, reply.body.as_deref()) {
        (Some(page), _) => page.items.iter().map(JsonItem::json).collect(),
        (None, Some(body)) if body["value"].is_array() => {
            body["value"].as_array().into_iter().flatten().map(Cow::Borrowed).collect()
        }
        (None, _) => return Err("the answer holds no list \"value\"".to_owned()),
    };
    let mut found = Vec::new();
    for metric in metrics {
        let code = metric["errorCode"].as_str().unwrap_or("Success");
        if code != "Success" {
            let message = metric["errorMessage"].as_str().unwrap_or("no explanation");
            return Err(format!("{code}: {message}"));
        }
        let series = metric["timeseries"].as_array().ok_or("a metric has no \"timeseries\"")?;
        found.extend(series.iter().filter_map(one));
    }
    Ok(found)
}

/// One series; `None` where a label is missing.
fn one(series: &Value) -> Option<Series> {
    let labels = series["metadatavalues"].as_array()?;
    // Azure writes the names of dimensions in lower case here, and in its own case elsewhere.
    let label = |name: &str| {
        let is = |label: &&Value| {
            label["name"]["value"].as_str().is_some_and(|own| own.eq_ignore_ascii_case(name))
        };
        labels.iter().find(is)?["value"].as_str()
    };
    let points = series["data"].as_array()?.iter().filter_map(|point| {
        let state = state(point["average"].as_f64()?);
        Some(Point { time: point["timeStamp"].as_str()?.to_owned(), state })
    });
    Some(Series {
        frontend: label("FrontendIPAddress")?.parse().ok()?,
        port: label("FrontendPort")?.parse().ok()?,
        protocol: label("ProtocolType").and_then(protocol),
        backend: label("BackendIPAddress")?.parse().ok()?,
        points: points.collect(),
    })
}

fn state(average: f64) -> ProbeState {
    if average >= 100.0 {
        ProbeState::Up
    } else if average > 0.0 {
        ProbeState::Partly
    } else {
        ProbeState::Down
    }
}

/// By name, or by the number that IP has for it.
fn protocol(text: &str) -> Option<Protocol> {
    match text.to_ascii_lowercase().as_str() {
        "tcp" | "6" => Some(Protocol::Tcp),
        "udp" | "17" => Some(Protocol::Udp),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::{Item, Page};
    use serde_json::json;
    use std::sync::Arc;

    fn reply(body: Value) -> Reply {
        Reply { status: 200, body: Some(Arc::new(body)), ..Reply::default() }
    }

    #[test]
    fn a_request_names_the_frontends_and_nothing_ends_its_query_early() {
        let id = ResourceId::new(
            "/subscriptions/s/resourceGroups/r g/providers/Microsoft.Network/loadBalancers/a#b",
        );
        let frontends = ["20.0.0.1".parse().unwrap(), "fd00::1".parse().unwrap()];
        let span = ("2026-01-01T00:00:00Z", "2026-01-01T00:10:00Z");
        let request = request(&id, &frontends, span, "c");
        let want = "/subscriptions/s/resourceGroups/r%20g/providers/Microsoft.Network/\
            loadBalancers/a%23b/providers/Microsoft.Insights/metrics?api-version=2018-01-01\
            &metricnames=DipAvailability\
            &timespan=2026-01-01T00%3A00%3A00Z%2F2026-01-01T00%3A10%3A00Z\
            &interval=PT1M&aggregation=Average&top=10000&$filter=\
            FrontendIPAddress%20eq%20%2720.0.0.1%27%20or%20\
            FrontendIPAddress%20eq%20%27fd00%3A%3A1%27%20and%20\
            FrontendPort%20eq%20%27%2A%27%20and%20ProtocolType%20eq%20%27%2A%27%20and%20\
            BackendIPAddress%20eq%20%27%2A%27";
        assert_eq!(request.target, Target::Path(want.to_owned()));
        assert_eq!((request.method, request.body), (Method::Get, None));
    }

    fn series(labels: &[(&str, &str)], averages: &[Option<f64>]) -> Value {
        let labels = labels.iter().map(|(name, value)| {
            json!({"name": {"value": name, "localizedValue": name}, "value": value})
        });
        let minutes = averages.iter().enumerate();
        let data: Vec<Value> = minutes
            .map(|(at, average)| {
                let mut point = json!({"timeStamp": format!("2026-01-01T00:0{at}:00Z")});
                if let Some(average) = average {
                    point["average"] = json!(average);
                }
                point
            })
            .collect();
        json!({"metadatavalues": labels.collect::<Vec<_>>(), "data": data})
    }

    #[test]
    fn an_answer_is_read_whatever_the_case_of_its_dimensions() {
        let body = json!({"value": [{"errorCode": "Success", "timeseries": [
            series(
                &[("frontendipaddress", "20.0.0.1"), ("frontendport", "80"),
                    ("protocoltype", "TCP"), ("backendipaddress", "10.0.0.4")],
                &[Some(100.0), None, Some(33.3), Some(0.0)],
            ),
            series(&[("FrontendIPAddress", "20.0.0.1"), ("FrontendPort", "80")], &[Some(1.0)]),
            series(
                &[("FrontendIPAddress", "fd00::1"), ("FrontendPort", "0"),
                    ("ProtocolType", "17"), ("BackendIPAddress", "fd00::4")],
                &[],
            ),
        ]}]});
        let items = vec![Item::Parsed(Arc::new(body["value"][0].clone()))];
        let page = Some(Page { items, next: None });
        let paged = read(&Reply { status: 200, page, ..Reply::default() });
        let found = read(&reply(body)).unwrap();
        assert_eq!(paged.as_ref(), Ok(&found), "as the sender takes lists apart");
        let states: Vec<ProbeState> = found[0].points.iter().map(|point| point.state).collect();
        assert_eq!(states, [ProbeState::Up, ProbeState::Partly, ProbeState::Down]);
        assert_eq!(found[0].points[2].time, "2026-01-01T00:03:00Z");
        assert_eq!((found[0].port, found[0].protocol), (80, Some(Protocol::Tcp)));
        assert_eq!((found[1].port, found[1].protocol), (0, Some(Protocol::Udp)));
        assert_eq!(found.len(), 2, "a series without a backend says nothing about one");
    }

    #[test]
    fn what_is_no_answer_is_said() {
        assert!(read(&reply(json!({}))).unwrap_err().contains("value"));
        let failed = json!({"value": [{"errorCode": "Busy", "errorMessage": "later",
            "timeseries": []}]});
        assert_eq!(read(&reply(failed)).unwrap_err(), "Busy: later");
        assert!(read(&reply(json!({"value": [{}]}))).is_err());
        assert!(read(&Reply::default()).is_err());
    }
}
