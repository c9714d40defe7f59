//! What belongs to nothing, as a table.

use crate::output::{Ink, Paint};
use crate::render::table::lay_out;
use explain::orphans::{Origin, Orphan, Orphans};
use model::Policy;
use serde::Serialize;

/// What `ballast orphans -o json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OrphansDocument {
    /// The cluster's name.
    pub cluster: String,
    /// What belongs to nothing, in the order in which it can be deleted.
    pub orphans: Vec<Orphan>,
    /// Azure changes that are due for Services that are there.
    pub pending: usize,
    /// Why the list holds what it holds: `gone` or `otherLayout`.
    pub origin: Origin,
}

impl OrphansDocument {
    /// Of what was found.
    #[must_use]
    pub fn of(found: &Orphans, policy: &Policy) -> Self {
        let (orphans, pending) = (found.list.clone(), found.pending);
        Self { cluster: policy.cluster.to_string(), orphans, pending, origin: found.origin }
    }
}

/// The whole table.
#[must_use]
pub fn render(document: &OrphansDocument, paint: Paint) -> String {
    if document.orphans.is_empty() {
        return format!("Nothing of cluster {} is left over.\n", document.cluster);
    }
    let head = ["KIND", "NAME", "IN", "GROUP"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(document.orphans.iter().map(row));
    let mut text = String::new();
    for (at, row) in lay_out(&rows).iter().enumerate() {
        let line = row.join("  ");
        let line = line.trim_end();
        let line = if at == 0 { paint.ink(Ink::Bold, line) } else { line.to_owned() };
        text.push_str(&line);
        text.push('\n');
    }
    let count = document.orphans.len();
    let verb = if count == 1 { "belongs" } else { "belong" };
    text.push_str(&match document.origin {
        Origin::Gone => {
            format!("\n{count} {verb} to no Service of cluster {}.\n", document.cluster)
        }
        Origin::OtherLayout => format!(
            "\n{count} {verb} to the other layout (node-based or container load balancers) of \
             cluster {}.\nNothing is written until they are gone: set the load balancer keys of \
             the cloud config back, or delete\nthe Services under the former config, or these \
             resources in Azure.\n",
            document.cluster
        ),
    });
    text
}

fn row(orphan: &Orphan) -> Vec<String> {
    let Orphan { kind, name, resource } = orphan;
    let own = resource.name();
    let part = !own.eq_ignore_ascii_case(name);
    vec![
        (*kind).to_owned(),
        name.to_string(),
        if part { own.to_owned() } else { "-".to_owned() },
        resource.group().map(|group| group.to_string()).unwrap_or_default(),
    ]
}
