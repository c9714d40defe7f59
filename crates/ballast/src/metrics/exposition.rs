//! The two text formats of metrics.

use super::table::{Metric, MetricKind};
use control::Histogram;
use std::fmt::{Display, Write as _};

/// How metrics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The text format that came before it.
    Text,
}

impl Format {
    /// What a client gets that sends this `Accept`.
    #[must_use]
    pub fn accepted(accept: &str) -> Self {
        let old = accept.contains("text/plain") && !accept.contains("application/openmetrics-text");
        if old { Self::Text } else { Self::OpenMetrics }
    }

    /// Its content type.
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// How many of a histogram's values are one of the metric's unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// One.
    Whole,
    /// Milliseconds, shown as seconds.
    Milliseconds,
    /// Microseconds, shown as seconds.
    Microseconds,
}

impl Scale {
    fn factor(self) -> u64 {
        match self {
            Self::Whole => 1,
            Self::Milliseconds => 1_000,
            Self::Microseconds => 1_000_000,
        }
    }

    /// The bound of a bucket: a float, as OpenMetrics wants it.
    fn bound(self, value: u64) -> String {
        // Bounds are small: a float holds them exactly enough to be printed as written.
        format!("{:?}", value as f64 / self.factor() as f64)
    }

    fn sum(self, value: u64) -> String {
        let factor = self.factor();
        match factor.ilog10() as usize {
            0 => value.to_string(),
            digits => format!("{}.{:0digits$}", value / factor, value % factor),
        }
    }
}

/// Metrics as text, family after family.
#[derive(Debug)]
pub struct Exposition {
    format: Format,
    text: String,
    family: &'static str,
}

impl Exposition {
    /// Nothing yet.
    #[must_use]
    pub fn new(format: Format) -> Self {
        Self { format, text: String::new(), family: "" }
    }

    /// Adds a sample. All samples of a metric come one after the other.
    pub fn add(&mut self, metric: &Metric, labels: &[(&str, &str)], value: impl Display) {
        self.head(metric);
        let ending = match metric.kind {
            MetricKind::Counter => "_total",
            MetricKind::Info => "_info",
            MetricKind::Gauge | MetricKind::Histogram => "",
        };
        self.sample(metric, ending, labels, None, value);
    }

    /// Adds a histogram.
    pub fn add_histogram(
        &mut self,
        metric: &Metric,
        labels: &[(&str, &str)],
        histogram: &Histogram,
        scale: Scale,
    ) {
        self.head(metric);
        let mut count = 0;
        let bounds = histogram.bounds().iter().map(|bound| scale.bound(*bound));
        for (own, bound) in histogram.counts().iter().zip(bounds.chain(["+Inf".to_owned()])) {
            count += own;
            self.sample(metric, "_bucket", labels, Some(&bound), count);
        }
        self.sample(metric, "_count", labels, None, count);
        self.sample(metric, "_sum", labels, None, scale.sum(histogram.sum()));
    }

    fn head(&mut self, metric: &Metric) {
        if self.family == metric.name {
            return;
        }
        self.family = metric.name;
        let Metric { name, help, kind, .. } = metric;
        let kind_name = match (kind, self.format) {
            (MetricKind::Counter, _) => "counter",
            (MetricKind::Histogram, _) => "histogram",
            (MetricKind::Info, Format::OpenMetrics) => "info",
            (MetricKind::Gauge, _) | (MetricKind::Info, Format::Text) => "gauge",
        };
        let ending = match (kind, self.format) {
            (MetricKind::Counter, Format::Text) => "_total",
            (MetricKind::Info, Format::Text) => "_info",
            _ => "",
        };
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "# TYPE {name}{ending} {kind_name}");
        if let Some(unit) = metric.unit().filter(|_| self.format == Format::OpenMetrics) {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.text, "# HELP {name}{ending} {help}");
    }

    fn sample(
        &mut self,
        metric: &Metric,
        ending: &str,
        labels: &[(&str, &str)],
        bound: Option<&str>,
        value: impl Display,
    ) {
        debug_assert!(
            labels.iter().map(|(name, _)| *name).eq(metric.labels.iter().map(|l| l.name)),
            "{} has other labels in the table",
            metric.name
        );
        let le = bound.map(|bound| ("le", bound));
        let labels: Vec<String> = labels
            .iter()
            .copied()
            .chain(le)
            .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
            .collect();
        let labels =
            if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.text, "{}{ending}{labels} {value}", metric.name);
    }

    /// The whole text.
    #[must_use]
    pub fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::super::table::{BATCH_SERVICES, BUILD, LATENCY, PLANS};
    use super::*;

    fn example(format: Format) -> String {
        let mut exposition = Exposition::new(format);
        exposition.add(&BUILD, &[("version", "1\"2")], 1);
        exposition.add(&PLANS, &[], 7);
        let mut histogram = Histogram::new(&[100, 60_000]);
        histogram.add(100);
        histogram.add(1_500);
        exposition.add_histogram(&LATENCY, &[("kind", "pod")], &histogram, Scale::Milliseconds);
        let mut histogram = Histogram::new(&[1]);
        histogram.add(3);
        exposition.add_histogram(&BATCH_SERVICES, &[], &histogram, Scale::Whole);
        exposition.finish()
    }

    #[test]
    fn openmetrics() {
        let wanted = "\
# TYPE ballast_build info
# HELP ballast_build The program that runs.
ballast_build_info{version=\"1\\\"2\"} 1
# TYPE ballast_plans counter
# HELP ballast_plans Plans made.
ballast_plans_total 7
# TYPE ballast_programming_latency_seconds histogram
# UNIT ballast_programming_latency_seconds seconds
# HELP ballast_programming_latency_seconds \
From seeing a change in Kubernetes until Azure has confirmed all that follows from it.
ballast_programming_latency_seconds_bucket{kind=\"pod\",le=\"0.1\"} 1
ballast_programming_latency_seconds_bucket{kind=\"pod\",le=\"60.0\"} 2
ballast_programming_latency_seconds_bucket{kind=\"pod\",le=\"+Inf\"} 2
ballast_programming_latency_seconds_count{kind=\"pod\"} 2
ballast_programming_latency_seconds_sum{kind=\"pod\"} 1.600
# TYPE ballast_batch_services histogram
# HELP ballast_batch_services Services that an Azure write was sent for.
ballast_batch_services_bucket{le=\"1.0\"} 0
ballast_batch_services_bucket{le=\"+Inf\"} 1
ballast_batch_services_count 1
ballast_batch_services_sum 3
# EOF
";
        assert_eq!(example(Format::OpenMetrics), wanted);
    }

    #[test]
    fn the_older_format_names_counters_and_infos_as_they_are_sampled() {
        let text = example(Format::Text);
        assert!(text.contains("# TYPE ballast_plans_total counter\n"), "{text}");
        assert!(text.contains("# TYPE ballast_build_info gauge\n"), "{text}");
        assert!(!text.contains("# UNIT") && !text.contains("# EOF"), "{text}");
    }

    #[test]
    fn a_client_gets_what_it_accepts() {
        let prometheus =
            "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5";
        assert_eq!(Format::accepted(prometheus), Format::OpenMetrics);
        assert_eq!(Format::accepted("text/plain;version=0.0.4"), Format::Text);
        assert_eq!(Format::accepted("*/*"), Format::OpenMetrics);
    }
}
