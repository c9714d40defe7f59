//! The process itself, as the kernel counts it: what every program that Prometheus scrapes tells,
//! under the names that all of them use. Where there is no `/proc` these metrics are left out.

use super::exposition::Exposition;
use super::table;

/// Ticks of the kernel's clock in a second, as it tells them to programs.
const TICKS: u64 = 100;

/// What the kernel knows of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Process {
    /// Ticks of processor time.
    spent: Option<u64>,
    /// Ticks between the machine's start and its own.
    started: Option<u64>,
    /// When the machine started, in seconds.
    booted_s: Option<u64>,
    resident_kib: Option<u64>,
    files: Option<u64>,
    most_files: Option<u64>,
}

impl Process {
    fn seen() -> Self {
        let text =
            |name: &str| std::fs::read_to_string(format!("/proc/{name}")).unwrap_or_default();
        let files = std::fs::read_dir("/proc/self/fd").ok();
        Self {
            // The directory itself is open while it is read.
            files: files.map(|all| (all.count() as u64).saturating_sub(1)),
            ..Self::read(
                &text("self/stat"),
                &text("self/status"),
                &text("self/limits"),
                &text("stat"),
            )
        }
    }

    fn read(stat: &str, status: &str, limits: &str, machine: &str) -> Self {
        // The program's name, in brackets, may have blanks in it.
        let fields = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let field = |at: usize| fields.get(at).and_then(|text| text.parse::<u64>().ok());
        Self {
            spent: field(11).zip(field(12)).map(|(user, system)| user + system),
            started: field(19),
            booted_s: number(machine, "btime"),
            resident_kib: number(status, "VmRSS:"),
            files: None,
            most_files: number(limits, "Max open files"),
        }
    }
}

/// The first number behind the words that a line begins with.
fn number(text: &str, words: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(words))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Adds them.
pub(super) fn add(exposition: &mut Exposition) {
    let Process { spent, started, booted_s, resident_kib, files, most_files } = Process::seen();
    if let Some(spent) = spent {
        exposition.add(&table::PROCESSOR, &[], seconds(spent));
    }
    if let Some((started, booted_s)) = started.zip(booted_s) {
        exposition.add(&table::STARTED, &[], seconds(booted_s * TICKS + started));
    }
    if let Some(kib) = resident_kib {
        exposition.add(&table::MEMORY, &[], kib * 1_024);
    }
    if let Some(files) = files {
        exposition.add(&table::FILES, &[], files);
    }
    if let Some(most) = most_files {
        exposition.add(&table::MOST_FILES, &[], most);
    }
}

fn seconds(ticks: u64) -> String {
    format!("{}.{:02}", ticks / TICKS, ticks % TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_texts_are_read() {
        let stat = "4711 (a (b) c) S 1 4711 4711 0 -1 4194560 9 0 0 0 250 75 0 0 20 0 4 0 123456 9";
        let status = "Name:\tballast\nVmHWM:\t  40000 kB\nVmRSS:\t   32768 kB\n";
        let limits = "Limit  Soft Limit  Hard Limit  Units\n\
                      Max open files            1024                 524288               files\n";
        let machine = "cpu  1 2 3\nbtime 1700000000\n";
        let known = Process {
            spent: Some(325),
            started: Some(123_456),
            booted_s: Some(1_700_000_000),
            resident_kib: Some(32_768),
            files: None,
            most_files: Some(1_024),
        };
        assert_eq!(Process::read(stat, status, limits, machine), known);
        assert_eq!(Process::read("", "", "", ""), Process::default());
        assert_eq!(seconds(325), "3.25");
        assert_eq!(seconds(1_700_000_000 * TICKS + 123_456), "1700001234.56");
    }
}
