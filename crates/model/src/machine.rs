//! The machine that a node runs on.

use crate::id::ResourceId;
use crate::kubernetes::Node;

/// What provider ids of Azure begin with.
const SCHEME: &str = "azure://";

impl Node {
    /// The id of the VM, or of the scale set's instance, that the node runs on, by its provider id;
    /// `None` where that is another cloud's. The letter case of the scheme does not matter, and the
    /// scheme may be missing.
    #[must_use]
    pub fn machine(&self) -> Option<ResourceId> {
        let text = self.provider_id.as_deref()?;
        let scheme = text.get(..SCHEME.len()).filter(|text| text.eq_ignore_ascii_case(SCHEME));
        let id = scheme.and_then(|scheme| text.get(scheme.len()..)).unwrap_or(text);
        id.starts_with('/').then(|| ResourceId::new(id))
    }

    /// Whether a NIC is that of the node's machine, as the NIC's id says it.
    #[must_use]
    pub fn has_nic(&self, nic: &ResourceId) -> bool {
        let Some(machine) = self.machine() else { return false };
        let nic = nic.folded();
        nic.strip_prefix(&machine.folded()).is_some_and(|rest| rest.starts_with('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::NodeName;
    use crate::kubernetes::{Membership, NodeRole};
    use std::sync::Arc;

    const VM: &str = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/\
                      virtualMachineScaleSets/vmss/virtualMachines/1";

    fn node(provider_id: Option<String>) -> Node {
        Node {
            name: NodeName::new("a"),
            revision: Arc::from("1"),
            addresses: Vec::new(),
            ranges: Vec::new(),
            provider_id: provider_id.map(Arc::from),
            labels: Arc::default(),
            membership: Membership::Member,
            role: NodeRole::Worker,
        }
    }

    #[test]
    fn a_provider_id_of_azure_names_a_machine() {
        let vm = Some(ResourceId::new(VM));
        for (text, machine) in [
            (format!("azure://{VM}"), vm.clone()),
            (format!("AZURE://{}", VM.to_uppercase()), vm.clone()),
            (VM.to_owned(), vm),
            ("kind://docker/kind/kind-control-plane".to_owned(), None),
            ("azure://".to_owned(), None),
            ("ü".to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(node(Some(text.clone())).machine(), machine, "{text}");
        }
        assert_eq!(node(None).machine(), None);
    }

    #[test]
    fn a_nic_below_the_machine_is_its_own() {
        let nic = |of: &str| ResourceId::new(format!("{of}/networkInterfaces/nic"));
        for scheme in ["azure://", "Azure://", ""] {
            let node = node(Some(format!("{scheme}{VM}")));
            assert!(node.has_nic(&nic(&VM.to_lowercase())), "{scheme}");
            assert!(!node.has_nic(&nic(&format!("{VM}0"))), "{scheme}");
        }
        assert!(!node(Some("kind://x".to_owned())).has_nic(&nic(VM)));
    }
}
