//! What Services ask for, in rare combinations, and what has to be in Azure for it.
//!
//! Each expectation was written down from the description of the resources, before the code was
//! asked. The words in brackets say which part of it: names, public IPs, frontends, rules, probes,
//! load balancers, pools, security rules, Private Link Services, status.

mod support;

#[path = "asked/view.rs"]
mod view;

#[path = "asked/addresses.rs"]
mod addresses;
#[path = "asked/changes.rs"]
mod changes;
#[path = "asked/links.rs"]
mod links;
#[path = "asked/members.rs"]
mod members;
#[path = "asked/places.rs"]
mod places;
#[path = "asked/rules.rs"]
mod rules;
#[path = "asked/security.rs"]
mod security;
#[path = "asked/tenants.rs"]
mod tenants;
