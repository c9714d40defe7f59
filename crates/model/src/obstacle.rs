//! What stands in the way: the one value from which Events, conditions, status, pages and metrics
//! take what they say of trouble.

use crate::id::{ResourceId, ServiceUid};
use crate::plan::Object;
use crate::world::Need;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The longest wait between two attempts, in milliseconds, where Azure does not ask for a longer
/// one.
pub const LONGEST_RETRY_MS: u64 = 60_000;

/// One thing that stands in the way of a Service, or of all.
///
/// # Guarantees
/// - [`Obstacle::cause`] stays the same from one attempt to the next while Azure answers with the
///   same code: what is written to Kubernetes is made from it.
/// - Nothing secret is in it. `message` may have ids of the subscription and the identity: where
///   everybody reads, [`Obstacle::brief`] is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Obstacle {
    /// What was attempted on what.
    pub about: Subject,
    /// The Services that are held up; empty where no single Service is.
    pub services: BTreeSet<ServiceUid>,
    /// What kind of trouble it is.
    pub kind: ObstacleKind,
    /// What was attempted, as in `PUT publicIPAddresses/kubernetes-a00`; the annotation, field or
    /// config key of a Finding.
    pub operation: Arc<str>,
    /// Azure's error code, the API server's status, or the rule of a Finding.
    pub code: Arc<str>,
    /// What Azure said; the whole text of a Finding.
    pub message: Arc<str>,
    /// The number of the last attempt, from 1; 0 where nothing is attempted again.
    pub attempt: u32,
    /// Since when it stands in the way, in milliseconds of the controller's clock.
    pub since_ms: u64,
    /// When it is attempted again; `None` while an attempt is under way, and where none follows.
    pub next_ms: Option<u64>,
}

/// What an [`Obstacle`] is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Subject {
    /// The cluster as a whole.
    Cluster,
    /// One of Azure's limits on calls.
    Limit(Arc<str>),
    /// A read of Azure.
    Read(Need),
    /// A write of an Azure resource.
    Write(ResourceId),
    /// A write of a Kubernetes object.
    Object(Object),
    /// A read or write of the ledger.
    Ledger,
    /// A Service: what it asks for is refused.
    Service(ServiceUid),
}

/// Kinds of [`Obstacle`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum ObstacleKind {
    /// Ballast refuses what a Service asks for.
    Refused,
    /// The owner of a Service holds it back by an annotation.
    Held,
    /// An operator has paused writes to Azure.
    Paused,
    /// Azure rejects a write for a reason that does not pass by itself: a quota, a policy, a lock,
    /// a missing right.
    Rejected,
    /// A read of Azure fails.
    Unreadable,
    /// A write of Azure failed and is tried again after a back-off.
    BackedOff,
    /// Azure lets no more calls through for now.
    Throttled,
    /// A call has not been answered for long.
    NoAnswer,
    /// A write of a Kubernetes object fails.
    Kubernetes,
}

impl ObstacleKind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::Refused,
        Self::Held,
        Self::Paused,
        Self::Rejected,
        Self::Unreadable,
        Self::BackedOff,
        Self::Throttled,
        Self::NoAnswer,
        Self::Kubernetes,
    ];

    /// The kind as a label of metrics and in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Held => "held",
            Self::Paused => "paused",
            Self::Rejected => "rejected",
            Self::Unreadable => "unreadable",
            Self::BackedOff => "backed_off",
            Self::Throttled => "throttled",
            Self::NoAnswer => "no_answer",
            Self::Kubernetes => "kubernetes",
        }
    }

    /// The reason of a Service's condition while it stands in the way.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Refused => "Refused",
            Self::Held => "Held",
            Self::Paused => "AzureWritesPaused",
            Self::Rejected => "AzureRejected",
            Self::Unreadable => "AzureUnreadable",
            Self::BackedOff => "AzureWriteFailed",
            Self::Throttled => "AzureThrottled",
            Self::NoAnswer => "AzureNoAnswer",
            Self::Kubernetes => "KubernetesWriteFailed",
        }
    }

    fn happened(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Held => "held by its owner",
            Self::Paused => "paused by an operator",
            Self::Rejected => "rejected by Azure",
            Self::Unreadable => "cannot be read",
            Self::BackedOff | Self::Kubernetes => "failed",
            Self::Throttled => "throttled by Azure",
            Self::NoAnswer => "no answer",
        }
    }
}

impl Obstacle {
    /// What was attempted and why it failed: `PUT publicIPAddresses/a: rejected by Azure (Code:
    /// what Azure said)`.
    #[must_use]
    pub fn cause(&self) -> String {
        let Self { operation, kind, code, message, .. } = self;
        let happened = kind.happened();
        match kind {
            ObstacleKind::Refused | ObstacleKind::Held | ObstacleKind::Paused => {
                message.to_string()
            }
            ObstacleKind::NoAnswer => format!("{operation}: {happened}"),
            _ if message.is_empty() => format!("{operation}: {happened} ({code})"),
            _ => format!("{operation}: {happened} ({code}: {message})"),
        }
    }

    /// The cause, and what follows, in words that stay the same from one attempt to the next.
    #[must_use]
    pub fn standing(&self) -> String {
        let next = match self.kind {
            ObstacleKind::Refused | ObstacleKind::Held | ObstacleKind::Paused => {
                return self.cause();
            }
            ObstacleKind::NoAnswer => "it is attempted again once it counts as failed".to_owned(),
            ObstacleKind::Throttled => "next attempt as soon as Azure allows it".to_owned(),
            _ => format!("next attempt within {} s", LONGEST_RETRY_MS / 1_000),
        };
        format!("{}; {next}", self.cause())
    }

    /// The cause, the number of the attempt, and when the next one follows.
    #[must_use]
    pub fn text(&self, now_ms: u64) -> String {
        format!("{}{}", self.cause(), self.attempts().text(now_ms))
    }

    /// The cause without what Azure said, for those who may read no ids.
    #[must_use]
    pub fn brief(&self) -> String {
        match self.kind {
            ObstacleKind::Refused => format!("a Service is refused ({})", self.code),
            ObstacleKind::Held => format!("a Service is held by its owner ({})", self.code),
            ObstacleKind::Paused | ObstacleKind::NoAnswer => self.cause(),
            kind => format!("{}: {} ({})", self.operation, kind.happened(), self.code),
        }
    }

    /// How often it was attempted, and when it is attempted again.
    #[must_use]
    pub fn attempts(&self) -> Attempts {
        let Self { kind, attempt, since_ms, next_ms, .. } = *self;
        Attempts { kind, attempt, since_ms, next_ms }
    }
}

/// How often something was attempted, and when it is attempted again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempts {
    /// What kind of trouble it is.
    pub kind: ObstacleKind,
    /// The number of the last attempt; 0 where nothing is attempted again.
    pub attempt: u32,
    /// Since when it stands in the way, in milliseconds of the controller's clock.
    pub since_ms: u64,
    /// When it is attempted again.
    pub next_ms: Option<u64>,
}

impl Attempts {
    /// What follows the cause: `; attempt 3, next in 40 s`, or ` for 12 s` while there is no
    /// answer.
    #[must_use]
    pub fn text(self, now_ms: u64) -> String {
        let Self { kind, attempt, since_ms, next_ms } = self;
        match (kind, next_ms) {
            (ObstacleKind::NoAnswer, _) => {
                format!(" for {} s", now_ms.saturating_sub(since_ms) / 1_000)
            }
            _ if attempt == 0 => String::new(),
            (_, Some(at)) => {
                let seconds = at.saturating_sub(now_ms).div_ceil(1_000);
                format!("; attempt {attempt}, next in {seconds} s")
            }
            (_, None) => format!("; attempt {attempt}, the next is under way"),
        }
    }
}

impl Need {
    /// The read as an operation: `GET loadBalancers`.
    #[must_use]
    pub fn operation(&self) -> String {
        match self {
            Self::Balancers => "GET loadBalancers".to_owned(),
            Self::PublicIps(group) => format!("GET publicIPAddresses in {group}"),
            Self::SecurityGroup => "GET networkSecurityGroups".to_owned(),
            Self::Subnet(id) => format!("GET subnets/{}", id.name()),
            Self::Zones => "GET availability zones".to_owned(),
            Self::PrivateLinks(group) => format!("GET privateLinkServices in {group}"),
            Self::ScaleSets => "GET virtualMachineScaleSets".to_owned(),
            Self::ScaleSetVms(id) => {
                format!("GET virtualMachineScaleSets/{}/virtualMachines", id.name())
            }
            Self::NetworkInterfaces => "GET networkInterfaces".to_owned(),
            Self::VirtualMachines => "GET virtualMachines".to_owned(),
            Self::NatGateways => "GET natGateways".to_owned(),
            Self::GatewayServices => "GET services of the Service Gateway".to_owned(),
            Self::GatewayLocations => "GET addresses of the Service Gateway".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn obstacle(kind: ObstacleKind) -> Obstacle {
        Obstacle {
            about: Subject::Cluster,
            services: BTreeSet::new(),
            kind,
            operation: "PUT publicIPAddresses/a".into(),
            code: "Code".into(),
            message: "no room".into(),
            attempt: 3,
            since_ms: 1_000,
            next_ms: Some(50_000),
        }
    }

    #[test]
    fn texts_follow_the_template() {
        let rejected = obstacle(ObstacleKind::Rejected);
        let text = "PUT publicIPAddresses/a: rejected by Azure (Code: no room); attempt 3, next \
                    in 40 s";
        assert_eq!(rejected.text(10_000), text);
        assert_eq!(rejected.brief(), "PUT publicIPAddresses/a: rejected by Azure (Code)");
        let text = "PUT publicIPAddresses/a: rejected by Azure (Code: no room); next attempt \
                    within 60 s";
        assert_eq!(rejected.standing(), text);
        let under_way = Obstacle { next_ms: None, ..rejected };
        assert!(under_way.text(0).ends_with("; attempt 3, the next is under way"));
        let silent = obstacle(ObstacleKind::NoAnswer);
        assert_eq!(silent.text(13_500), "PUT publicIPAddresses/a: no answer for 12 s");
        assert_eq!(silent.cause(), "PUT publicIPAddresses/a: no answer");
        let refused = Obstacle { attempt: 0, ..obstacle(ObstacleKind::Refused) };
        assert_eq!(refused.text(0), "no room");
        let paused = Obstacle { attempt: 0, ..obstacle(ObstacleKind::Paused) };
        assert_eq!((paused.text(0), paused.standing()), ("no room".into(), "no room".into()));
    }

    #[test]
    fn kinds_have_words_of_their_own() {
        let words: BTreeSet<&str> = ObstacleKind::ALL.iter().map(|kind| kind.word()).collect();
        let reasons: BTreeSet<&str> = ObstacleKind::ALL.iter().map(|kind| kind.reason()).collect();
        assert_eq!((words.len(), reasons.len()), (9, 9));
    }
}
