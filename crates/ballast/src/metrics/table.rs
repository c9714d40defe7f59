//! Every metric there is: what `/metrics` exports and what docs/metrics.md says.

/// What kind of metric it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// It only rises; its samples end in `_total`.
    Counter,
    /// It rises and falls.
    Gauge,
    /// Its samples end in `_bucket`, `_count` and `_sum`.
    Histogram,
    /// Always 1: the labels are what it says; its sample ends in `_info`.
    Info,
}

/// A label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// Its name.
    pub name: &'static str,
    /// What its values are.
    pub values: &'static str,
}

/// A metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Name, without what its kind appends.
    pub name: &'static str,
    /// Kind.
    pub kind: MetricKind,
    /// Its help text.
    pub help: &'static str,
    /// Its labels.
    pub labels: &'static [Label],
}

impl Metric {
    /// The unit, which ends the name.
    #[must_use]
    pub fn unit(&self) -> Option<&'static str> {
        self.name.ends_with("_seconds").then_some("seconds")
    }

    /// Names of its samples.
    #[must_use]
    pub fn samples(&self) -> Vec<String> {
        let endings: &[&str] = match self.kind {
            MetricKind::Counter => &["_total"],
            MetricKind::Gauge => &[""],
            MetricKind::Histogram => &["_bucket", "_count", "_sum"],
            MetricKind::Info => &["_info"],
        };
        endings.iter().map(|ending| format!("{}{ending}", self.name)).collect()
    }
}

macro_rules! metrics {
    ($(#[$about:meta])* $all:ident: $(
        $constant:ident $kind:ident $name:literal [$($label:ident $values:literal)*] $help:literal;
    )*) => {
        $(
            #[doc = concat!("`", $name, "`: ", $help)]
            pub const $constant: Metric = Metric {
                name: $name,
                kind: MetricKind::$kind,
                help: $help,
                labels: &[$(Label { name: stringify!($label), values: $values }),*],
            };
        )*

        $(#[$about])*
        pub const $all: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    /// All metrics of the controller, in the order of the output.
    METRICS:
    BUILD Info "ballast_build"
        [version "the version of the program"]
        "The program that runs.";
    READY Gauge "ballast_ready" []
        "1 when /readyz says ok, else 0.";
    LEADER Gauge "ballast_leader" []
        "1 while this process may write, else 0.";

    LATENCY Histogram "ballast_programming_latency_seconds"
        [kind "`service`, `pod`, `node`"]
        "From seeing a change in Kubernetes until Azure has confirmed all that follows from it.";
    PENDING Gauge "ballast_programming_pending_changes"
        [kind "`service`, `pod`, `node`"]
        "Changes whose programming latency is being measured.";

    SERVICES Gauge "ballast_services"
        [state "`programmed`, `waiting`, `refused`, `refused_serving`, `held`, `rejected`, \
                `removing`"]
        "Services by state.";
    WAITS Gauge "ballast_service_waits"
        [reason "`reading`, `listing`, `finalizer`, `resource`, `gathering`, `rejected`, \
                 `budget`, `writing`, `status`, `ledger`, `pods`"]
        "Services that wait for something of this kind; one may wait for several.";
    LONGEST_WAIT Gauge "ballast_longest_wait_seconds"
        [state "`waiting`, `rejected`, `removing`"]
        "How long the Service has been in this state that is in it longest.";
    REJECTED Gauge "ballast_services_rejected" []
        "Services rejected by Azure: retried apart, so that the others are written.";
    OBSTACLES Gauge "ballast_obstacles"
        [kind "`refused`, `held`, `paused`, `rejected`, `unreadable`, `backed_off`, `throttled`, \
               `no_answer`, `kubernetes`"]
        "What stands in the way: calls that fail or are not answered, refusals, and a pause of \
         writes.";
    FINDINGS Gauge "ballast_findings"
        [severity "`refusal`, `hold`, `note`"
         rule "the rule that is broken"]
        "Findings about Services, Pods and the whole; a rule that nothing breaks is left out.";
    TROUBLE Gauge "ballast_service_trouble"
        [service_namespace "the Service's namespace"
         service_name "the Service's name"
         reason "`refused`, `refused_serving`, `rejected`, `waiting`, `removing`"]
        "1 for a Service that is refused, that Azure rejects, or that has been waiting or removing \
         for more than fifteen minutes: the first 100 by namespace and name, from the process that \
         may write.";
    TROUBLE_UNLISTED Gauge "ballast_service_trouble_unlisted" []
        "Services that ballast_service_trouble leaves out, because 100 others come before them.";

    BACKENDS Gauge "ballast_service_backends"
        [service_namespace "the Service's namespace"
         service_name "the Service's name"
         traffic_policy "`Cluster`, `Local`: with `Local` only nodes with a ready Pod answer"
         state "`up`: answers all health probes, `partly`, `down`"]
        "Backends of a Service by what Azure's health probes find; only with --backend-health.";
    BACKENDS_UNREAD Gauge "ballast_service_backends_unreadable" []
        "1 while Azure's metric of health probes cannot be read, else 0; only with \
         --backend-health.";

    WRITES Counter "ballast_azure_writes"
        [resource "the kind of resource, as in `load_balancer`"
         outcome "`succeeded`, `stale`, `refused`, `throttled`, `failed`"]
        "Azure writes that have ended.";
    READS Counter "ballast_azure_reads"
        [resource "the kind of resource, as in `load_balancer`"
         outcome "`succeeded`, `throttled`, `failed`"]
        "Azure reads that were answered, polls and pages of lists included.";
    FAILURES Counter "ballast_azure_failures" []
        "Azure writes that failed, whatever the outcome was.";
    BATCH_SERVICES Histogram "ballast_batch_services" []
        "Services that an Azure write was sent for.";
    BATCH_ADDRESSES Histogram "ballast_batch_addresses" []
        "Pods' addresses in a write of the Service Gateway's addresses.";
    BACKING_OFF Gauge "ballast_resources_backing_off" []
        "Azure resources whose last write failed and that wait for the next try.";
    READS_FAILING Gauge "ballast_lists_unreadable" []
        "Lists of Azure whose last read failed.";
    BUDGET_LEFT Gauge "ballast_budget_left"
        [limit "`reads`, `writes`, `deletes`, `network_reads`, `network_writes`, `compute_reads`, \
                `compute_writes`"
         subscription "one of the cloud config"]
        "Calls that Azure's limit lets through now.";
    BUDGET_SHARE Gauge "ballast_budget_share_percent"
        [limit "`reads`, `writes`, `deletes`, `network_reads`, `network_writes`, `compute_reads`, \
                `compute_writes`"
         subscription "one of the cloud config"]
        "Part of the published limit that is believed to be left to this process.";
    BUDGET_WAITING Gauge "ballast_budget_waiting"
        [limit "`reads`, `writes`, `deletes`, `network_reads`, `network_writes`, `compute_reads`, \
                `compute_writes`"
         subscription "one of the cloud config"]
        "Writes that wait for this limit.";
    BUDGET_REFUSALS Counter "ballast_budget_refusals"
        [limit "`reads`, `writes`, `deletes`, `network_reads`, `network_writes`, `compute_reads`, \
                `compute_writes`"
         subscription "one of the cloud config"]
        "Calls that Azure refused as too many.";

    DRIFT_FIELDS Gauge "ballast_drift_fields" []
        "Fields that Ballast set and that differ in Azure now.";
    DRIFT_NOTICED Counter "ballast_drift_noticed" []
        "Fields that Ballast set and another client changed.";

    KUBERNETES Counter "ballast_kubernetes_writes" []
        "Kubernetes writes sent, Events not included.";
    PLANS Counter "ballast_plans" []
        "Plans made.";
    STEP Histogram "ballast_step_seconds" []
        "Taking in what happened, planning and making requests.";

    GATE_DELAY Histogram "ballast_readiness_gate_delay_seconds" []
        "From ready but for Ballast's gate until the Service Gateway lists the Pod.";
    GATE_TIMEOUTS Counter "ballast_readiness_gate_timeouts" []
        "Pods let through because time was over.";
    GATES_WAITING Gauge "ballast_readiness_gates_waiting" []
        "Pods that wait for nothing but Ballast's gate.";

    PROXIES_ILL Gauge "ballast_proxies_ill" []
        "Nodes whose agent reports an ill service proxy; 0 without `healthCheck: agent`.";
    PROXIES_MAJORITY Gauge "ballast_proxies_majority" []
        "1 while so many service proxies are ill that their nodes stay in rotation, else 0.";

    PROCESSOR Counter "process_cpu_seconds" []
        "Processor time that the process has spent.";
    STARTED Gauge "process_start_time_seconds" []
        "When the process started, in seconds since 1970.";
    MEMORY Gauge "process_resident_memory_bytes" []
        "Memory of the process that is in RAM.";
    FILES Gauge "process_open_fds" []
        "Files and sockets that the process has open.";
    MOST_FILES Gauge "process_max_fds" []
        "Files and sockets that the process may have open at most.";
}

metrics! {
    /// What `ballast node-agent` exports besides what is said of the program and its process.
    AGENT_METRICS:
    AGENT_PROXY Gauge "ballast_agent_proxy_healthy" []
        "1 when the node's service proxy was healthy when it was asked last, else 0.";
    AGENT_LEAVING Gauge "ballast_agent_node_leaving" []
        "1 while the node takes no new connections because it is going or excluded, else 0.";
    AGENT_MAJORITY Gauge "ballast_agent_majority" []
        "1 while the node stays in rotation whatever its proxy says, else 0.";
    AGENT_SERVICES Gauge "ballast_agent_local_services" []
        "Services with ready endpoints on the node.";
}

const INTRODUCTION: &str = "\
# Metrics

`/metrics` speaks OpenMetrics, or the older text format where a client accepts only that. Names and
labels are stable: one that changes stands in the changelog. No label grows with the number of
Services, Pods or nodes, but for those of `ballast_service_backends`, which names each Service: it
is there where [backend health](backend-health.md) is read. `ballast_service_trouble` names at most
100 Services. Alert rules, a dashboard and examples of scraping are in
[deploy/prometheus](../deploy/prometheus); what to do about an alert is in
[operating.md](operating.md).

This page is made from the table in the code.

";

const AGENT_TEXT: &str = "
## Of an agent

[`ballast node-agent`](node-agent.md) exports these at its own port, beside `ballast_build_info` and
what is said of the process:

";

const LATENCY_TEXT: &str = "
## What the programming latency is

The clock of `ballast_programming_latency_seconds` starts when this process sees the change, and
ends when Azure has confirmed the last write that follows from it, read back where writes are read
back:

- `service`: a Service was created, changed or deleted, until all of it is (or nothing more of it
  is) in Azure. Writing its status comes after that.
- `pod`: an address of a Pod became ready or stopped being so, until the Service Gateway lists it or
  does no longer. Only on container load balancers: elsewhere no address of a Pod is in Azure.
- `node`: a node came, went, or changed its addresses, until every pool has followed. Only where
  pools hold nodes.

Failures and waits on the way are part of it. An object that changes again before it is confirmed
keeps its first start. Not measured are: what was there when this process started, what another
process wrote, a change that leads to no write, and a Service that is refused. Changes that are not
confirmed yet are in `ballast_programming_pending_changes`.

## Health

| path | answer |
| --- | --- |
| `/livez`, `/healthz` | 200 `ok` while the process answers and its loop has come round in \
the last three minutes: a restart helps with nothing else |
| `/readyz` | 200 `ok` once all is listed and can be read, then what stands in the \
way; else 503 and the reasons; one a line, without ids |

A process that waits for the lease is ready, too: it could take over at once
([leader election](leader.md)). `ballast_ready` is the same as a metric.
";

/// The page docs/metrics.md.
#[must_use]
pub fn reference() -> String {
    let mut text = INTRODUCTION.to_owned();
    table(&mut text, METRICS);
    text.push_str(AGENT_TEXT);
    table(&mut text, AGENT_METRICS);
    text.push_str(LATENCY_TEXT);
    text
}

fn table(text: &mut String, metrics: &[Metric]) {
    text.push_str("| metric | kind | labels | what |\n| --- | --- | --- | --- |\n");
    for metric in metrics {
        let kind = match metric.kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
            MetricKind::Info => "info",
        };
        let name = match metric.kind {
            MetricKind::Histogram => metric.name.to_owned(),
            _ => metric.samples().concat(),
        };
        let labels: Vec<String> =
            metric.labels.iter().map(|l| format!("`{}`: {}", l.name, l.values)).collect();
        let labels = labels.join("<br>");
        text.push_str(&format!("| `{name}` | {kind} | {labels} | {} |\n", metric.help));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn the_page_is_made_from_the_table() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
        let made = reference();
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&file, &made).expect("the page can be written");
        }
        let kept = std::fs::read_to_string(&file).unwrap_or_default();
        let hint = "docs/metrics.md is out of date: UPDATE_DOCS=1 cargo test -p ballast --lib";
        assert!(kept == made, "{hint}");
    }

    #[test]
    fn names_are_as_prometheus_wants_them() {
        let mut names = BTreeSet::new();
        for metric in METRICS.iter().chain(AGENT_METRICS) {
            assert!(names.insert(metric.name), "{} is there twice", metric.name);
            let plain = |c: char| c.is_ascii_lowercase() || c == '_';
            // What every program tells has the names that every program gives it.
            let ours = metric.name.starts_with("ballast_") || metric.name.starts_with("process_");
            assert!(ours && metric.name.chars().all(plain));
            for ending in ["_total", "_info", "_bucket", "_count", "_sum", "_ms"] {
                assert!(!metric.name.ends_with(ending), "{}", metric.name);
            }
            assert!(metric.help.ends_with('.') && !metric.help.contains(['\n', '\\', '"']));
        }
    }
}
