//! What Services ask for, in rare combinations, and what has to be in Azure for it.
//!
//! Each expectation was written down from the description of the resources, before the code was
//! asked. The words in brackets say which part of it: names, public IPs, frontends, rules, probes,
//! load balancers, pools, security rules, Private Link Services, status.

mod view;

mod addresses;
mod changes;
mod consent;
mod links;
mod members;
mod places;
mod rules;
mod security;
mod tenants;
