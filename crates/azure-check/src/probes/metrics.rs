//! Azure Monitor: whether it answers for the metric of health probes as the controller asks.

use super::{refused, taken};
use crate::assumption::{Blocked, Tried, Verdict};
use crate::estate;
use crate::lab::Lab;
use arm::{Method, Target, probe_status};
use std::net::IpAddr;

const METRIC: &str = "DipAvailability";
const SPAN_MS: u64 = 600_000;
const DAY_S: u64 = 86_400;

/// RFC 3339, seconds, UTC.
fn utc(at_ms: u64) -> String {
    let seconds = at_ms / 1_000;
    // Days since the first of March of the year 0, in eras of 400 years: leap days come last.
    let days = seconds / DAY_S + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * of_era + of_era / 4 - of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + of_era + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{of_month:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The controller's question about a load balancer, as a path.
fn question(lab: &mut Lab<'_>) -> Result<String, Blocked> {
    let id = estate::balancer(lab)?;
    let balancer = lab.read(&id)?;
    let frontend = &balancer["properties"]["frontendIPConfigurations"][0]["properties"];
    let address: Option<IpAddr> =
        frontend["privateIPAddress"].as_str().and_then(|text| text.parse().ok());
    let Some(address) = address else {
        return Err(Blocked("the load balancer's frontend has no address".to_owned()));
    };
    let from_ms = lab.now_ms().saturating_sub(SPAN_MS);
    let span = (utc(from_ms), utc(from_ms + SPAN_MS));
    let request = probe_status::request(&id, &[address], (&span.0, &span.1), "");
    let (Target::Path(path) | Target::Url(path)) = request.target;
    Ok(path)
}

/// The metric is there, by the version and with the dimensions of the controller's question. A load
/// balancer without backends has no value.
pub(crate) fn probe_status(lab: &mut Lab<'_>) -> Tried {
    let path = question(lab)?;
    let done = lab.ask_path(Method::Get, path, None);
    match taken(&done)? {
        Verdict::Confirmed(_) => {}
        other => return Ok(other),
    }
    let metrics = done.came.body.as_ref().and_then(|body| body["value"].as_array());
    let metric = metrics.into_iter().flatten().find(|one| one["name"]["value"] == METRIC);
    Ok(match metric.map(|one| one["errorCode"].as_str().unwrap_or("Success")) {
        Some("Success") => Verdict::AS_ASSUMED,
        Some(code) => Verdict::Differs(format!("the metric has errorCode {code}")),
        None => Verdict::Differs(format!("the answer has no metric {METRIC}")),
    })
}

/// A dimension that the metric does not have is refused: those of the question are its own.
pub(crate) fn unknown_dimension(lab: &mut Lab<'_>) -> Tried {
    let path = question(lab)?.replace("BackendIPAddress", "BackendMachine");
    let done = lab.ask_path(Method::Get, path, None);
    Ok(refused(&done, 400, None))
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn times_are_written_as_azure_reads_them() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_782_400_000), "2000-02-29T00:00:00Z");
        assert_eq!(utc(1_700_000_000_123), "2023-11-14T22:13:20Z");
        assert_eq!(utc(1_735_689_599_999), "2024-12-31T23:59:59Z");
    }
}
