//! The circles that stay, and why. None does in ballast, control and plan.

/// A circle that stays.
pub(super) struct Standing {
    pub(super) package: &'static str,
    /// All of them, in order.
    pub(super) modules: &'static [&'static str],
    pub(super) reason: &'static str,
}

/// Every circle that stays.
pub(super) const STANDING: &[Standing] = &[
    Standing {
        package: "azure-check",
        modules: &[
            "assumption",
            "estate",
            "lab",
            "probes::echoes",
            "probes::etags",
            "probes::gateway",
            "probes::links",
            "probes::metrics",
            "probes::mistakes",
            "probes::operations",
            "probes::permissions",
            "probes::refusals",
            "probes::throttle",
            "probes::versions",
            "registry",
        ],
        reason: "an assumption holds the function that tries it, which takes the laboratory, \
                 which hears the verdict on each assumption",
    },
    Standing {
        package: "azure-emulator",
        modules: &["azure", "contract", "gateway", "operations", "subscription"],
        reason: "Azure is one state machine: its state in `azure`, what is done to it written as \
                 methods in a file a subject, beside the subject's own part of the state",
    },
    Standing {
        package: "edge",
        modules: &[
            "kubernetes::sources",
            "kubernetes::strays",
            "kubernetes::watch",
            "kubernetes::wire",
        ],
        reason: "a watch and what it is made of: a source's type stands with the loop that runs it",
    },
    Standing {
        package: "explain",
        modules: &["causes::input", "causes::policy_inputs"],
        reason: "keys of the cloud config are inputs beside those of the Service, and all are \
                 gathered where an input is defined",
    },
    Standing {
        package: "kube-emulator",
        modules: &["calls", "discovery", "faults", "slices", "store"],
        reason: "the API is one store: what is done to it is written as methods in a file a \
                 subject, beside the subject's own part of the state",
    },
    Standing {
        package: "model",
        modules: &["migration", "policy"],
        reason: "a Policy holds its migration, and a migration the Policy that it leads away from",
    },
    Standing {
        package: "model",
        modules: &["obstacle", "plan", "report"],
        reason: "a Plan and its Report name each other's parts: an operation waits as the Report \
                 says it, and an obstacle is about an object as the Plan writes it",
    },
    Standing {
        package: "promise",
        modules: &[
            "asks::addresses",
            "asks::container",
            "asks::link",
            "asks::ports",
            "asks::public_ip",
            "asks::read",
        ],
        reason: "`read` asks each for its annotations, and holds what several of them read alike",
    },
    Standing {
        package: "promise",
        modules: &[
            "case",
            "claims",
            "confirm",
            "consent",
            "contest",
            "links",
            "placement",
            "public_ip",
            "rules",
            "tags",
        ],
        reason: "a Case is settled while it is made: what contests come to is part of it, and a \
                 contest is judged on the Case as far as it is made",
    },
    Standing {
        package: "promise",
        modules: &["pools", "shares"],
        reason: "whether a node belongs into a pool depends on how nodes are shared out, and how \
                 they are to be shared out on which pools they may be in",
    },
    Standing {
        package: "sim",
        modules: &[
            "canary",
            "election",
            "happening",
            "interrupt",
            "poison",
            "process",
            "shortage",
            "stage",
            "trace",
            "weather",
        ],
        reason: "a run is one state machine: its state in `stage`, what happens to it written as \
                 methods in a file a subject, beside the subject's own part of the state",
    },
];

#[cfg(test)]
mod tests {
    use super::STANDING;

    #[test]
    fn no_circle_stays_where_decisions_are_made_and_carried_out() {
        let listed = STANDING.iter().map(|standing| standing.package);
        let free = ["ballast", "control", "plan"];
        assert_eq!(listed.filter(|package| free.contains(package)).count(), 0);
    }
}
