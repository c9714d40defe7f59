//! What an agent's `/metrics` exports.

use crate::metrics::exposition::{Exposition, Format};
use crate::metrics::{self, table};
use health::{Agent, Verdict};

/// All metrics of an agent.
pub(super) fn of_agent(agent: &Agent, format: Format) -> String {
    let mut exposition = Exposition::new(format);
    metrics::build(&mut exposition);
    let leaving = agent.leaving().is_some();
    exposition.add(&table::AGENT_PROXY, &[], u8::from(agent.is_proxy_healthy()));
    exposition.add(&table::AGENT_LEAVING, &[], u8::from(leaving));
    exposition.add(&table::AGENT_MAJORITY, &[], u8::from(agent.verdict() == Verdict::Together));
    exposition.add(&table::AGENT_SERVICES, &[], agent.local_services());
    metrics::process(&mut exposition);
    exposition.finish()
}
