//! Azure Monitor: Health Probe Status (`DipAvailability`) of load balancers, from what the data
//! path's probes have found.
//!
//! Of the form of question and answer as Azure's REST reference has it ("Metrics - List"). Azure's
//! value is an average over the minute; the one here is what held at the minute's end, and of the
//! minute under way what holds now, so that a change shows at once. There is no wall clock here:
//! the end of the question's time span counts as now.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::azure::Azure;
use crate::json::{same, text};
use crate::message::{Answer, Checked, refusal, refuse};
use crate::path::{Route, kind};
use data_path::{Probed, Transport};

const METRICS: &str = "microsoft.insights/metrics";
const METRIC: &str = "DipAvailability";
const MINUTE_MS: i64 = 60_000;
/// Series in an answer where the question does not say.
const TOP: usize = 10;
/// The dimensions, as the monitoring data reference has them.
const DIMENSIONS: [&str; 5] =
    ["ProtocolType", "BackendPort", "FrontendIPAddress", "FrontendPort", "BackendIPAddress"];

/// Values by dimension that a filter lets through; `*` is any.
type Filter = BTreeMap<&'static str, BTreeSet<String>>;

impl Azure {
    /// What the probes of a data path have found by now.
    pub fn set_probed(&mut self, probed: Vec<Probed>) {
        self.probed = probed;
    }

    /// The answer to a question for metrics of a load balancer; `None` for any other path.
    pub(crate) fn metrics(&self, route: &Route) -> Option<Checked<Answer>> {
        let asked = route.is_collection() && route.kind() == METRICS;
        asked.then(|| self.probe_status(route))
    }

    fn probe_status(&self, route: &Route) -> Checked<Answer> {
        self.check_group(route)?;
        let key = route.key();
        let id = key.strip_suffix(&format!("/providers/{METRICS}")).unwrap_or_default();
        let Some(entry) = self.store.get(id) else {
            let message = format!("The Resource '{id}' was not found.");
            return Err(refusal(404, "ResourceNotFound", message));
        };
        if entry.kind != kind::LB {
            return refuse("BadRequest", "The emulator has metrics of load balancers only.");
        }
        let names = asked(route, "metricnames");
        if !same(names, METRIC) {
            let message = format!(
                "Failed to find metric configuration for provider: Microsoft.Network, resource \
                 Type: loadBalancers, metric: {names}, Valid metrics: {METRIC}"
            );
            return refuse("BadRequest", message);
        }
        let (from_ms, to_ms) = time_span(asked(route, "timespan"))?;
        if !same(asked(route, "interval"), "PT1M") || !same(asked(route, "aggregation"), "Average")
        {
            return refuse("BadRequest", "The emulator has averages of a minute only.");
        }
        let filter = filter(asked(route, "$filter"))?;
        let top = asked(route, "top").parse().unwrap_or(TOP);
        // A Basic load balancer has no metrics.
        let standard = same(text(&entry.value, &["sku", "name"]), "Standard");
        let own = format!("{id}/loadbalancingrules/");
        let of_balancer = self.probed.iter().filter(|one| standard && one.rule.starts_with(&own));
        let series = series(of_balancer, &filter, (from_ms, to_ms));
        let shown: Vec<Value> = series.into_iter().take(top).collect();
        Ok(Answer::new(200, Some(self.body(&entry.id, asked(route, "timespan"), shown))))
    }

    fn body(&self, id: &str, time_span: &str, series: Vec<Value>) -> Value {
        json!({
            "cost": 0, "timespan": time_span, "interval": "PT1M",
            "value": [{
                "id": format!("{id}/providers/Microsoft.Insights/metrics/{METRIC}"),
                "type": "Microsoft.Insights/metrics",
                "name": {"value": METRIC, "localizedValue": "Health Probe Status"},
                "displayDescription": "Average Load Balancer health probe status per time duration",
                "unit": "Count", "timeseries": series, "errorCode": "Success"}],
            "namespace": "Microsoft.Network/loadBalancers",
            "resourceregion": self.options.location,
        })
    }
}

fn asked<'a>(route: &'a Route, key: &str) -> &'a str {
    route.query.get(key).map_or("", String::as_str)
}

/// Beginning and end, in milliseconds since the Unix epoch.
fn time_span(span: &str) -> Checked<(i64, i64)> {
    let at = |text: &str| text.parse::<jiff::Timestamp>().ok().map(|at| at.as_millisecond());
    let parts = span.split_once('/').and_then(|(from, to)| Some((at(from)?, at(to)?)));
    match parts {
        Some((from, to)) if from < to => Ok((from, to)),
        _ => refuse("BadRequest", format!("Invalid time span: '{span}'.")),
    }
}

/// `A eq 'x' or A eq 'y' and B eq '*'`: `or` parts values of one dimension.
fn filter(text: &str) -> Checked<Filter> {
    let mut found = Filter::new();
    for part in text.split(" and ").filter(|part| !part.trim().is_empty()) {
        let mut of_part = None;
        for term in part.split(" or ") {
            let known = term.trim().split_once(" eq ").and_then(|(name, value)| {
                let name = DIMENSIONS.iter().find(|known| same(known, name.trim()))?;
                let value = value.trim().strip_prefix('\'')?.strip_suffix('\'')?;
                Some((*name, value.to_lowercase()))
            });
            let Some((name, value)) = known.filter(|k| of_part.is_none_or(|own| own == k.0)) else {
                let message = format!(
                    "Metric: {METRIC} does not support requested dimension combination: {term}"
                );
                return refuse("BadRequest", message);
            };
            of_part = Some(name);
            found.entry(name).or_default().insert(value);
        }
    }
    Ok(found)
}

fn value_of(one: &Probed, dimension: &str) -> String {
    match dimension {
        "ProtocolType" => match one.transport {
            Transport::Tcp => "TCP".to_owned(),
            Transport::Udp => "UDP".to_owned(),
        },
        "BackendPort" => one.backend_port.to_string(),
        "FrontendIPAddress" => one.frontend.to_string(),
        "FrontendPort" => one.port.to_string(),
        _ => one.backend.to_string(),
    }
}

/// One series for each combination of the filter's dimensions; the others are averaged.
fn series<'a>(
    probed: impl Iterator<Item = &'a Probed>,
    filter: &Filter,
    span: (i64, i64),
) -> Vec<Value> {
    let mut groups: BTreeMap<Vec<String>, Vec<&Probed>> = BTreeMap::new();
    for one in probed {
        let lets = |(name, values): (&&str, &BTreeSet<String>)| {
            values.contains("*") || values.contains(&value_of(one, name).to_lowercase())
        };
        if filter.iter().all(lets) {
            let values = filter.keys().map(|name| value_of(one, name)).collect();
            groups.entry(values).or_default().push(one);
        }
    }
    let one = |(values, members): (Vec<String>, Vec<&Probed>)| {
        let labels = filter.keys().zip(values).map(|(name, value)| {
            let name = name.to_lowercase();
            json!({"name": {"value": name, "localizedValue": name}, "value": value})
        });
        json!({"metadatavalues": labels.collect::<Vec<_>>(), "data": points(&members, span)})
    };
    groups.into_iter().map(one).collect()
}

/// Minute by minute; those before the first finding have no value.
fn points(members: &[&Probed], (from_ms, to_ms): (i64, i64)) -> Vec<Value> {
    let mut points = Vec::new();
    let mut minute_ms = from_ms - from_ms.rem_euclid(MINUTE_MS);
    while minute_ms < to_ms {
        let end_ms = (minute_ms + MINUTE_MS).min(to_ms);
        let ago_ms = u64::try_from(to_ms - end_ms).unwrap_or_default();
        let values: Vec<bool> = members.iter().filter_map(|one| held(one, ago_ms)).collect();
        let time = jiff::Timestamp::from_millisecond(minute_ms).unwrap_or_default();
        let mut point = json!({"timeStamp": time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()});
        if !values.is_empty() {
            let good = values.iter().filter(|healthy| **healthy).count();
            point["average"] = json!(100.0 * good as f64 / values.len() as f64);
        }
        points.push(point);
        minute_ms += MINUTE_MS;
    }
    points
}

/// What a probe held so many milliseconds ago.
fn held(one: &Probed, ago_ms: u64) -> Option<bool> {
    let made = one.changes.iter().rev().find(|(change_ago_ms, _)| *change_ago_ms >= ago_ms);
    made.map(|(_, healthy)| *healthy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probed(backend: &str, port: u16, changes: &[(u64, bool)]) -> Probed {
        Probed {
            rule: "/lb/loadbalancingrules/r".to_owned(),
            frontend: "20.0.0.1".parse().unwrap(),
            port,
            transport: Transport::Tcp,
            backend: backend.parse().unwrap(),
            backend_port: 30_080,
            changes: changes.to_vec(),
        }
    }

    #[test]
    fn each_minute_has_what_held_at_its_end_and_the_last_one_what_holds_now() {
        // Healthy 140 s ago, ill 70 s ago, healthy again 5 s ago; the span ends at 00:03:30.
        let one = probed("10.0.0.4", 80, &[(140_000, true), (70_000, false), (5_000, true)]);
        let span = time_span("2026-01-01T00:00:10Z/2026-01-01T00:03:30Z").ok().unwrap();
        let found = points(&[&one], span);
        let averages: Vec<Option<f64>> = found.iter().map(|p| p["average"].as_f64()).collect();
        assert_eq!(averages, [None, Some(100.0), Some(0.0), Some(100.0)]);
        assert_eq!(found[0]["timeStamp"], "2026-01-01T00:00:00Z");
        let other = probed("10.0.0.5", 80, &[(1_000_000, false)]);
        let both = points(&[&one, &other], span);
        assert_eq!(both[1]["average"], 50.0);
    }

    #[test]
    fn series_are_parted_by_the_dimensions_that_the_filter_names() {
        let all = [
            probed("10.0.0.4", 80, &[(0, true)]),
            probed("10.0.0.4", 443, &[(0, true)]),
            probed("10.0.0.5", 80, &[(0, false)]),
        ];
        let count = |text: &str| {
            let filter = filter(text).ok().unwrap();
            series(all.iter(), &filter, (0, 60_000)).len()
        };
        assert_eq!(count(""), 1);
        assert_eq!(count("BackendIPAddress eq '*'"), 2);
        assert_eq!(count("BackendIPAddress eq '*' and frontendport eq '*'"), 3);
        assert_eq!(count("FrontendPort eq '443' or FrontendPort eq '1'"), 1);
        for wrong in [
            "Color eq '*'",
            "FrontendPort eq 80",
            "A",
            "FrontendPort eq '1' or \
             BackendPort eq '2'",
        ] {
            assert!(filter(wrong).is_err(), "{wrong}");
        }
    }
}
