//! Completion as a kubectl plugin: kubectl runs `kubectl_complete-ballast WORD…` and reads one
//! proposal a line, with a tab before its description, and last a colon with what the shell may do
//! besides.

use clap::{Arg, Command};
use std::ffi::OsString;

/// The name under which kubectl asks a plugin what could come next.
pub const COMPLETER: &str = "kubectl_complete-ballast";

/// What the shell may do besides (the numbers are those of kubectl's own completion).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Besides {
    /// Propose files.
    Files,
    /// Nothing.
    Nothing,
}

impl Besides {
    fn number(self) -> u8 {
        match self {
            Self::Files => 0,
            Self::Nothing => 4,
        }
    }
}

/// The answer to kubectl; the last word is the one that is being typed.
#[must_use]
pub fn propose(command: &Command, words: &[OsString]) -> String {
    let words: Vec<String> = words.iter().map(|w| w.to_string_lossy().into_owned()).collect();
    let (typed, before) = words.split_last().map_or(("", &[][..]), |(t, b)| (t.as_str(), b));
    let (at, waiting) = walk(command, before);
    let (proposals, besides) = match (waiting, typed.split_once('=')) {
        (Some(flag), _) => values(flag, ""),
        (None, Some((name, _))) if typed.starts_with("--") => {
            let flag = flags(command, at).find(|a| a.get_long() == name.strip_prefix("--"));
            flag.map_or((Vec::new(), Besides::Nothing), |a| values(a, &format!("{name}=")))
        }
        (None, _) if typed.starts_with('-') => (long_flags(command, at), Besides::Nothing),
        (None, _) => places(at),
    };
    let mut lines: Vec<String> = proposals
        .into_iter()
        .filter(|(word, _)| word.starts_with(typed))
        .map(|(word, help)| if help.is_empty() { word } else { format!("{word}\t{help}") })
        .collect();
    lines.push(format!(":{}\n", besides.number()));
    lines.join("\n")
}

/// The command that the words before lead to, and the flag whose value comes next.
fn walk<'c>(command: &'c Command, words: &[String]) -> (&'c Command, Option<&'c Arg>) {
    let mut at = command;
    let mut waiting = None;
    for word in words {
        if waiting.take().is_some() {
            continue;
        }
        if let Some(name) = word.strip_prefix("--") {
            waiting = flags(command, at).find(|a| a.get_long() == Some(name) && takes_value(a));
        } else if let Some(name) = word.strip_prefix('-') {
            let named = |a: &&Arg| a.get_short().is_some_and(|s| name == s.to_string());
            waiting = flags(command, at).find(|a| named(a) && takes_value(a));
        } else if let Some(next) = at.find_subcommand(word) {
            at = next;
        }
    }
    (at, waiting)
}

fn takes_value(flag: &Arg) -> bool {
    let least = flag.get_num_args().map(|n| n.min_values());
    flag.get_action().takes_values() && least.is_none_or(|least| least > 0)
}

/// The flags of a command, and those of the whole program.
fn flags<'c>(command: &'c Command, at: &'c Command) -> impl Iterator<Item = &'c Arg> {
    let global = command.get_arguments().filter(|a| a.is_global_set());
    at.get_arguments().chain(global).filter(|a| !a.is_hide_set())
}

type Proposals = Vec<(String, String)>;

fn long_flags(command: &Command, at: &Command) -> Proposals {
    let mut found: Proposals = flags(command, at)
        .filter_map(|a| Some((format!("--{}", a.get_long()?), line(a.get_help()))))
        .collect();
    found.push(("--help".to_owned(), "Print help".to_owned()));
    found.dedup_by(|a, b| a.0 == b.0);
    found
}

/// Subcommands, or the values of what stands without a flag.
fn places(at: &Command) -> (Proposals, Besides) {
    let commands: Proposals = at
        .get_subcommands()
        .filter(|c| !c.is_hide_set())
        .map(|c| (c.get_name().to_owned(), line(c.get_about())))
        .collect();
    if !commands.is_empty() {
        return (commands, Besides::Nothing);
    }
    at.get_positionals().next().map_or((Vec::new(), Besides::Nothing), |arg| values(arg, ""))
}

fn values(arg: &Arg, before: &str) -> (Proposals, Besides) {
    let listed: Proposals = arg
        .get_possible_values()
        .iter()
        .filter(|v| !v.is_hide_set())
        .map(|v| (format!("{before}{}", v.get_name()), line(v.get_help())))
        .collect();
    let besides = if listed.is_empty() { Besides::Files } else { Besides::Nothing };
    (listed, besides)
}

fn line(help: Option<&clap::builder::StyledStr>) -> String {
    help.map(ToString::to_string)
        .and_then(|t| t.lines().next().map(str::to_owned))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::command_line;

    fn ask(words: &[&str]) -> String {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        propose(&command_line(COMPLETER), &words)
    }

    #[test]
    fn commands_flags_and_values_are_proposed() {
        let status = "status\tShow each Service: its addresses, its load balancer, and why \
                      it is not programmed\n:4\n";
        assert_eq!(ask(&["statu"]), status);
        assert!(ask(&["status", "--wa"]).starts_with("--watch\t"));
        assert_eq!(ask(&["status", "-o", "j"]), "json\tFor programs\n:4\n");
        assert_eq!(ask(&["status", "--output=j"]), "--output=json\tFor programs\n:4\n");
        assert!(ask(&["plan", "--co"]).contains("--color\t"), "flags of the whole program, too");
        assert_eq!(ask(&["plan", "--cloud-config", "az"]), ":0\n", "a file");
        assert_eq!(ask(&["completions", "fi"]), "fish\n:4\n");
        assert_eq!(ask(&["nonsense-that-no-command-begins-with"]), ":4\n");
    }

    #[test]
    fn an_empty_word_proposes_every_command() {
        let all = ask(&[""]);
        for command in command_line(COMPLETER).get_subcommands() {
            assert!(all.contains(&format!("{}\t", command.get_name())), "{}", command.get_name());
        }
    }
}
