//! What a run of `azure-check` would call, and what it found.

use crate::output::{Ink, Paint};
use crate::render::table::lay_out;
use azure_check::{Assumption, Difference, Exchange, Line, Part, Report, Shown, Site, cost_of};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What `azure-check --dry-run -o json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ForecastDocument {
    /// The resource group.
    pub group: String,
    /// The region.
    pub location: String,
    /// Assumptions that would be tried.
    pub assumptions: usize,
    /// Each call, polls of operations left out.
    pub calls: Vec<ForecastCall>,
    /// Resources that would be made and deleted, by kind.
    pub resources: Vec<ForecastKind>,
}

/// A call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ForecastCall {
    /// Id of the assumption, or `clean`.
    pub of: String,
    /// Method and resource; `<run>` stands for the run's id.
    pub request: String,
}

/// Resources of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ForecastKind {
    /// The kind.
    pub kind: String,
    /// How many.
    pub count: usize,
    /// What they cost.
    pub cost: &'static str,
}

impl ForecastDocument {
    /// Of a run on an Azure that behaves as assumed.
    #[must_use]
    pub fn of(site: &Site, report: &Report, exchanges: &[Exchange]) -> Self {
        let sent = exchanges.iter().filter(|exchange| exchange.part != Part::Poll);
        let calls = sent.map(|exchange| ForecastCall {
            of: exchange.of.clone(),
            request: exchange.request.short().replace(&site.run, "<run>"),
        });
        let deleted = exchanges.iter().filter(|exchange| exchange.request.method == "DELETE");
        let names: BTreeSet<&str> = deleted.map(|exchange| exchange.request.bare()).collect();
        let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
        let made = exchanges
            .iter()
            .filter(|exchange| exchange.request.method == "PUT" && exchange.answer.status == 201);
        let made: BTreeSet<&str> = made.map(|exchange| exchange.request.bare()).collect();
        for name in made.intersection(&names) {
            let mut segments = name.rsplit('/').skip(1);
            *kinds.entry(segments.next().unwrap_or_default().to_owned()).or_default() += 1;
        }
        let resources = kinds.into_iter().map(|(kind, count)| {
            let cost = cost_of(&kind);
            ForecastKind { kind, count, cost }
        });
        Self {
            group: site.group.clone(),
            location: site.location.clone(),
            assumptions: report.assumptions.len(),
            calls: calls.collect(),
            resources: resources.collect(),
        }
    }

    /// How many resources would be made.
    #[must_use]
    pub fn made(&self) -> usize {
        self.resources.iter().map(|kind| kind.count).sum()
    }
}

/// Each call and what the resources cost.
#[must_use]
pub fn render_forecast(forecast: &ForecastDocument, paint: Paint) -> String {
    let mut text = String::new();
    let mut of = "";
    for call in &forecast.calls {
        if call.of != of {
            of = &call.of;
            let heading = if of == "clean" { "delete what was made" } else { of };
            text.push_str(&format!("{}\n", paint.ink(Ink::Bold, heading)));
        }
        text.push_str(&format!("  {}\n", call.request));
    }
    text.push_str(&format!("\n{}\n", paint.ink(Ink::Bold, "made, and deleted at the end")));
    let row = |kind: &ForecastKind| {
        vec![format!("  {}", kind.count), kind.kind.clone(), kind.cost.to_owned()]
    };
    let rows: Vec<Vec<String>> = forecast.resources.iter().map(row).collect();
    for row in lay_out(&rows) {
        text.push_str(&format!("{}\n", row.join("  ")));
    }
    text.push_str(&format!(
        "\n{}, {} calls and the polls of their operations, {} resources in the \
         resource group {} in {}.\nThese are the calls where Azure answers as assumed. Nothing was \
         sent.\n",
        counted(forecast.assumptions, "assumption"),
        forecast.calls.len(),
        forecast.made(),
        forecast.group,
        forecast.location
    ));
    text
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Each assumption on a line.
#[must_use]
pub fn render_list(chosen: &[&'static Assumption]) -> String {
    let row =
        |assumption: &&Assumption| vec![assumption.id.to_owned(), assumption.assumed.to_owned()];
    let rows: Vec<Vec<String>> = chosen.iter().map(row).collect();
    lay_out(&rows).iter().map(|row| format!("{}\n", row.join("  "))).collect()
}

/// Where an emulated Azure's answers differ from recorded ones.
#[must_use]
pub fn render_differences(differences: &[Difference], sent: usize) -> String {
    let mut text = String::new();
    for difference in differences {
        let Difference { line, of, request, what, times } = difference;
        let times = if *times > 1 { format!(" ({times} times)") } else { String::new() };
        text.push_str(&format!("line {line}, {of}: {request}: {what}{times}\n"));
    }
    text.push_str(&format!("{} differences in {sent} answers.\n", differences.len()));
    text
}

/// The report.
#[must_use]
pub fn render(report: &Report, paint: Paint) -> String {
    let mut text = String::new();
    for line in &report.assumptions {
        text.push_str(&assumption(line, paint));
    }
    if !report.latencies.is_empty() {
        let head = ["REQUEST", "COUNT", "P50 ms", "P90 ms", "LONGEST ms"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        rows.extend(report.latencies.iter().map(|latency| {
            let numbers = [latency.p50_ms, latency.p90_ms, latency.longest_ms];
            let mut row = vec![latency.request.clone(), latency.count.to_string()];
            row.extend(numbers.map(|ms| ms.to_string()));
            row
        }));
        text.push('\n');
        for (at, row) in lay_out(&rows).iter().enumerate() {
            let line = row.join("  ");
            let line = if at == 0 { paint.ink(Ink::Bold, line) } else { line };
            text.push_str(&format!("{line}\n"));
        }
    }
    for left in &report.left {
        text.push_str(&format!("\nleft: {}\n  {}\n  {}\n", left.id, left.why, left.command()));
    }
    text.push_str(&format!(
        "\n{} confirmed, {} differ, {} not tried, by {} calls.\n",
        report.confirmed, report.differs, report.not_tried, report.calls
    ));
    text
}

/// The verdict, what is assumed, and where it is not confirmed: why, where it stands, and the
/// calls that show it.
fn assumption(line: &Line, paint: Paint) -> String {
    let ink = match line.verdict {
        "confirmed" => Ink::Green,
        "differs" => Ink::Red,
        _ => Ink::Dim,
    };
    let verdict = paint.ink(ink, format!("{:9}", line.verdict));
    let mut text = format!("{verdict}  {}: {}\n", paint.ink(Ink::Cyan, line.id), line.assumed);
    if let Some(why) = &line.why {
        text.push_str(&format!("           {why}\n"));
    }
    if line.verdict != "differs" {
        return text;
    }
    text.push_str(&format!("           stands in {}\n", line.facts));
    for shown in &line.seen {
        text.push_str(&format!("           {}\n", call(shown)));
    }
    text
}

fn call(shown: &Shown) -> String {
    let mut text = shown.request.clone();
    for (name, value) in [("If-Match", &shown.if_match), ("If-None-Match", &shown.if_none_match)] {
        if let Some(value) = value {
            text.push_str(&format!(" ({name}: {value})"));
        }
    }
    text.push_str(&format!(": {}", shown.status));
    if let Some(code) = &shown.code {
        text.push_str(&format!(" {code}"));
    }
    for (name, value) in &shown.headers {
        text.push_str(&format!(", {name}: {value}"));
    }
    text
}
