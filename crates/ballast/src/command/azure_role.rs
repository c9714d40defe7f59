//! `ballast azure-role`.

use crate::exit::{Exit, Outcome};
use crate::output::{self, Format};
use crate::render::table::lay_out;
use arm::permission::{JOINS, Purpose, operations, permissions};
use clap::ValueEnum;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// Stands where the subscription is to be put.
const ANY_SCOPE: &str = "/subscriptions/00000000-0000-0000-0000-000000000000";

/// Arguments of `azure-role`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Include the permissions for this purpose (repeatable) [default: all but backend-health]
    #[arg(long = "for", value_enum, value_name = "PURPOSE")]
    pub purposes: Vec<RolePurpose>,
    /// Assignable scope (repeatable): /subscriptions/ID or /subscriptions/ID/resourceGroups/NAME
    #[arg(long, value_name = "SCOPE", default_value = ANY_SCOPE, value_parser = scope)]
    pub scope: Vec<String>,
    /// Name of the role
    #[arg(long, value_name = "NAME", default_value = "Ballast")]
    pub name: String,
    /// Output format; json is for `az role definition create --role-definition`
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t)]
    pub output: Format,
}

/// What a role is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RolePurpose {
    /// Load balancers of any SKU whose pools hold addresses; always included
    Basic,
    /// Pools of NICs, and moving them to pools of addresses
    NicPools,
    /// Private Link Services
    PrivateLink,
    /// Container load balancers
    Container,
    /// Reading which backends answer health probes: `run --backend-health`
    BackendHealth,
}

impl RolePurpose {
    fn purpose(self) -> Purpose {
        match self {
            Self::Basic => Purpose::Basic,
            Self::NicPools => Purpose::NicPools,
            Self::PrivateLink => Purpose::PrivateLink,
            Self::Container => Purpose::Container,
            Self::BackendHealth => Purpose::BackendHealth,
        }
    }
}

fn scope(text: &str) -> Result<String, String> {
    let segments: Vec<&str> = text.split('/').collect();
    let right = match segments.as_slice() {
        ["", a, id] => a.eq_ignore_ascii_case("subscriptions") && !id.is_empty(),
        ["", a, id, b, name] => {
            a.eq_ignore_ascii_case("subscriptions")
                && b.eq_ignore_ascii_case("resourceGroups")
                && !id.is_empty()
                && !name.is_empty()
        }
        _ => false,
    };
    let allowed = "allowed: /subscriptions/ID and /subscriptions/ID/resourceGroups/NAME";
    if right { Ok(text.to_owned()) } else { Err(allowed.to_owned()) }
}

/// Prints the role.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(args: &Args) -> Outcome {
    let mut purposes: BTreeSet<Purpose> = args.purposes.iter().map(|p| p.purpose()).collect();
    if purposes.is_empty() {
        purposes.extend(Purpose::ALL);
    }
    purposes.insert(Purpose::Basic);
    match args.output {
        Format::Json => output::print_json(&json!({
            "Name": args.name,
            "IsCustom": true,
            "Description": "What Ballast asks of Azure, and no more.",
            "Actions": permissions(&purposes),
            "NotActions": [],
            "DataActions": [],
            "NotDataActions": [],
            "AssignableScopes": args.scope,
        }))?,
        Format::Text => output::print(&text(&purposes))?,
    }
    Ok(Exit::Done)
}

/// Each permission and the calls that need it.
fn text(purposes: &BTreeSet<Purpose>) -> String {
    let mut rows: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let calls = operations().filter(|o| purposes.contains(&o.purpose));
    for operation in calls {
        let why = format!("{} of {}", operation.method.name(), operation.kind);
        rows.entry(operation.permission).or_default().insert(why);
    }
    for join in JOINS.iter().filter(|j| purposes.contains(&j.purpose)) {
        if let Some(permission) = join.permission {
            let why = format!("{} refers to it", join.from);
            rows.entry(permission).or_default().insert(why);
        }
    }
    let mut lines = Vec::new();
    for (permission, whys) in rows {
        let firsts = std::iter::once(permission).chain(std::iter::repeat(""));
        let whys = whys.into_iter();
        lines.extend(firsts.zip(whys).map(|(first, why)| vec![first.to_owned(), why]));
    }
    lay_out(&lines).iter().map(|cells| format!("{}\n", cells.join("  "))).collect()
}
