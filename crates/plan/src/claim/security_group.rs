//! Whether there is a security group to open addresses in, and who gets what it has room for.

pub(crate) mod room;
pub(crate) mod share;

use super::Refusal;
use crate::ask::{Intent, SecurityRules};
use crate::draft::{Case, Draft};
use crate::shape::security_group::is_idle;
use model::ServiceUid;
use model::report::Finding;
use model::world::Fact;

/// Refuses Services with rules of their own where there is no group: an address that nothing can be
/// opened for serves nobody.
pub(crate) fn settle(draft: &mut Draft<'_>) {
    let missing = draft.world.azure.security_group == Fact::Known(None);
    if !missing || draft.policy.security_group_name.is_empty() || is_idle(draft) {
        return;
    }
    let finding = not_found(draft);
    let open = |case: &Case<'_>| case.intent().is_some_and(opens_something);
    let cases = draft.cases.iter().filter(|(_, case)| open(case));
    let uids: Vec<ServiceUid> = cases.map(|(uid, _)| uid.clone()).collect();
    uids.iter().for_each(|uid| draft.refuse(uid, Refusal::new(finding.clone())));
    draft.findings.push(finding);
}

/// Whether a Service has rules of its own.
fn opens_something(intent: &Intent) -> bool {
    let access = &intent.access;
    let sources = !access.tags.is_empty() || !access.ranges.is_empty();
    access.rules == SecurityRules::Written && sources && !access.ports.is_empty()
}

fn not_found(draft: &Draft<'_>) -> Finding {
    let message = format!(
        "security group {{value}} does not exist in resource group {}; create it or correct the \
         cloud config",
        draft.policy.security_group_group
    );
    Finding::refusal(
        "SecurityGroupNotFound",
        "securityGroupName",
        &draft.policy.security_group_name,
        &message,
    )
}
