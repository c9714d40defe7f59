//! Reading never panics, says the same twice, and refuses if and only if it says so.

use super::*;
use fixture::{any_policy, any_service};
use proptest::prelude::*;

fn refuses(findings: &[Finding]) -> bool {
    findings.iter().any(|f| f.severity == Severity::Refusal)
}

proptest! {
    #[test]
    fn reading_is_total_and_deterministic(service in any_service(), policy in any_policy()) {
        let reading = read(&service, &policy);
        prop_assert_eq!(&reading, &read(&service, &policy));
        prop_assert_eq!(reading.intent.is_none(), refuses(&reading.findings));
        for finding in &reading.findings {
            let listed = findings::RULES.iter().find(|r| r.name == finding.rule);
            prop_assert_eq!(listed.map(|r| r.severity), Some(finding.severity));
        }
        if let Some(intent) = reading.intent {
            for probe in intent.rules.iter().filter_map(|r| r.probe.as_ref()) {
                let s = u32::from(probe.interval_s) * u32::from(probe.threshold);
                prop_assert!(probe.interval_s >= 5 && probe.threshold >= 2 && s < 120);
                prop_assert_eq!(probe.path.is_none(), probe.protocol == ProbeProtocol::Tcp);
            }
            let public = intent.exposure == Exposure::Public;
            let wanted = if public { intent.families.len() } else { 0 };
            prop_assert_eq!(intent.public_ips.len(), wanted);
        }
    }

    #[test]
    fn reading_for_containers_is_total_and_deterministic(service in any_service()) {
        let policy = Policy { sku: BalancerSku::Service, layout: Layout::PerService, ..policy() };
        let reading = container::read(&service, &policy);
        prop_assert_eq!(&reading, &container::read(&service, &policy));
        prop_assert_eq!(reading.intent.is_none(), refuses(&reading.findings));
    }
}
