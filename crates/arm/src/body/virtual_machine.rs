//! Virtual machines, as far as placement looks.

use super::fields::{BodyError, Envelope, flag, reference, text};
use model::world::VirtualMachine;
use serde_json::Value;

/// Reads a virtual machine; it is never written.
///
/// # Errors
/// The body is no object or has no id.
pub fn read_virtual_machine(body: &Value) -> Result<VirtualMachine, BodyError> {
    let found = Envelope::open("virtual machine", body, &[])?;
    let p = &found.properties;
    let set = ["availabilitySet", "virtualMachineScaleSet"];
    let nics = p.get("networkProfile").and_then(|n| n.get("networkInterfaces"));
    let nics = nics.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let is_primary = |nic: &&Value| {
        nic.get("properties").and_then(|p| p.get("primary")).and_then(flag) == Some(true)
    };
    let nic = nics.iter().find(is_primary).or(match nics {
        [only] => Some(only),
        _ => None,
    });
    Ok(VirtualMachine {
        host: p.get("osProfile").and_then(|o| o.get("computerName")).and_then(text),
        set: set.iter().find_map(|key| p.get(*key).and_then(reference)),
        nic: nic.and_then(reference),
        id: found.id,
    })
}
