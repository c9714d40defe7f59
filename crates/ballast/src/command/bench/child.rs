//! The controller as a process of its own: started, looked at from outside, ended.

use crate::exit::{Exit, Failure};
use bytes::Bytes;
use edge::web::Web;
use http_body_util::Full;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::process::{Child as Process, Command};

/// A running `ballast run`.
pub(super) struct Child {
    process: Process,
    address: SocketAddr,
    web: Web,
    /// When it was started.
    pub started: Instant,
}

/// Memory of a process, in KiB.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Memory {
    /// Now.
    pub resident_kib: u64,
    /// The most there ever was.
    pub peak_kib: u64,
}

/// How many steps of the controller took how long.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps {
    /// Upper bound in milliseconds (none for the last) and how many took at most so long.
    pub buckets: Vec<(Option<f64>, u64)>,
    /// All together, in milliseconds.
    pub sum_ms: f64,
}

impl Child {
    /// Starts one; its log goes to a file beside the cloud config.
    pub(super) fn start(kubeconfig: &Path, cloud_config: &Path) -> Result<Self, Failure> {
        let failed = |what: &str, e: &dyn std::fmt::Display| {
            Failure::new(Exit::Failed, format!("cannot start the controller: {what}: {e}"))
        };
        let program = std::env::current_exe().map_err(|e| failed("its own path", &e))?;
        let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let address = port.map_err(|e| failed("a free port", &e))?;
        let log = cloud_config.with_file_name("run.log");
        let log = std::fs::File::create(&log).map_err(|e| failed("its log", &e))?;
        let process = Command::new(program)
            .args(["run", "--leader-elect=false", "--log-level", "warn"])
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .arg("--cloud-config")
            .arg(cloud_config)
            .arg("--port")
            .arg(address.port().to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::from(log))
            .kill_on_drop(true)
            .spawn()
            .map_err(|e| failed("the process", &e))?;
        let web = Web::loopback().map_err(|e| failed("a client for its pages", &e))?;
        Ok(Self { process, address, web, started: Instant::now() })
    }

    /// Its memory, as the kernel counts it.
    pub(super) fn memory(&self) -> Memory {
        let pid = self.process.id().unwrap_or_default();
        let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let field = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
            line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0)
        };
        Memory { resident_kib: field("VmRSS:"), peak_kib: field("VmHWM:") }
    }

    /// What the processor has spent on it, in milliseconds: unlike the clock, it leaves out what
    /// else the machine does. The kernel counts in hundredths of a second.
    pub(super) fn processor_ms(&self) -> f64 {
        let pid = self.process.id().unwrap_or_default();
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name, in brackets, may have blanks in it.
        let fields = text.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
        let spent = fields.split_whitespace().skip(11).take(2);
        spent.filter_map(|n| n.parse::<f64>().ok()).sum::<f64>() * 10.0
    }

    /// How long its steps took so far.
    pub(super) async fn steps(&self) -> Steps {
        let text = self.metrics().await.unwrap_or_default();
        let mut steps = Steps::default();
        for line in text.lines().filter_map(|l| l.strip_prefix("ballast_step_seconds")) {
            let Some((name, value)) = line.rsplit_once(' ') else { continue };
            if name == "_sum" {
                steps.sum_ms = value.parse::<f64>().unwrap_or(0.0) * 1e3;
            } else if let Some(bound) = name.strip_prefix("_bucket{le=\"") {
                let bound = bound.trim_end_matches("\"}").parse::<f64>().ok();
                let bound = bound.filter(|b| b.is_finite()).map(|s| s * 1e3);
                steps.buckets.push((bound, value.parse().unwrap_or(0)));
            }
        }
        steps
    }

    async fn metrics(&self) -> Option<String> {
        let url = format!("http://{}/metrics", self.address);
        let request = http::Request::get(url).body(Full::new(Bytes::new())).ok()?;
        let reply = self.web.send(request, Duration::from_secs(10)).await.ok()?;
        Some(String::from_utf8_lossy(&reply.body).into_owned())
    }

    /// Ends it.
    pub(super) async fn end(mut self) {
        // It may have ended by itself; the next look at its work says so.
        let _ = self.process.kill().await;
    }
}

impl Steps {
    /// What no step since `before` has exceeded, in milliseconds; none: the last bound was.
    pub(super) fn bound_since(&self, before: &Self) -> Option<f64> {
        let all = |steps: &Self| steps.buckets.last().map_or(0, |(_, count)| *count);
        let new = all(self) - all(before);
        let own = |at: usize| self.buckets[at].1 - before.buckets.get(at).map_or(0, |b| b.1);
        (0..self.buckets.len()).find(|at| own(*at) == new).and_then(|at| self.buckets[at].0)
    }
}
