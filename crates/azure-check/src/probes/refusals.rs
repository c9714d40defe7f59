//! PUTs that Azure is expected to refuse: a body that it takes, and what makes it wrong.

use super::{beside_the_point, refused};
use crate::assumption::{Tried, Verdict};
use crate::estate;
use crate::lab::Lab;
use crate::site::Site;
use arm::{Condition, Method};
use model::ResourceId;
use serde_json::{Value, json};

/// One PUT that Azure is expected to refuse.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    /// What is sent without the mistake.
    pub base: Base,
    /// The mistake.
    pub mistake: fn(&mut Value, &Site),
    /// The status.
    pub status: u16,
    /// The error's code.
    pub code: &'static str,
    /// The code of its first detail, where that is assumed.
    pub detail: Option<&'static str>,
}

/// What a refusal is tried on.
#[derive(Clone, Copy, Debug)]
pub enum Base {
    /// A public IP that does not stand.
    NewIp,
    /// One whose name a function makes.
    NamedIp(fn(&Site) -> String),
    /// One that stands.
    StandingIp,
    /// A security group with one rule.
    SecurityGroup,
    /// A load balancer with a public frontend.
    PublicBalancer,
    /// One with an internal frontend.
    InternalBalancer,
    /// A Flexible scale set.
    ScaleSet,
}

/// Tries one.
pub(crate) fn attempt(lab: &mut Lab<'_>, refusal: &Refusal) -> Tried {
    let (id, mut body) = start(lab, refusal.base)?;
    (refusal.mistake)(&mut body, lab.site());
    let done = lab.ask(Method::Put, &id, Condition::None, Some(body));
    if let Some(why) = beside_the_point(&done.came) {
        return Ok(Verdict::NotTried(why));
    }
    let verdict = refused(&done, refusal.status, Some(refusal.code));
    let detail = refusal.detail.filter(|detail| done.came.detail() != Some(detail));
    Ok(match (verdict, detail) {
        (Verdict::Confirmed(_), Some(wanted)) => Verdict::Differs(format!(
            "refused with {}, whose detail is {} and not {wanted}",
            done.came.short(),
            done.came.detail().unwrap_or("absent")
        )),
        (verdict, _) => verdict,
    })
}

fn start(lab: &mut Lab<'_>, base: Base) -> Result<(ResourceId, Value), crate::assumption::Blocked> {
    Ok(match base {
        Base::NewIp => named(lab.site(), lab.site().name("refused-ip")),
        Base::NamedIp(name) => named(lab.site(), name(lab.site())),
        Base::StandingIp => {
            let id = estate::free_address(lab)?;
            let body = lab.read(&id)?;
            (id, body)
        }
        Base::SecurityGroup => {
            let inside = json!({"securityRules": [{"name": "rule", "properties": {
                "access": "Allow", "direction": "Inbound", "protocol": "Tcp", "priority": 500,
                "sourceAddressPrefix": "10.0.0.0/8", "sourcePortRange": "*",
                "destinationAddressPrefix": "192.0.2.1", "destinationPortRange": "80"}}]});
            let id = lab.site().id(estate::NSG, "refused-nsg");
            (id, estate::tracked(lab.site(), inside))
        }
        Base::PublicBalancer => {
            let frontend = estate::public_frontend(lab)?;
            balancer(lab.site(), "refused-public-lb", frontend)
        }
        Base::InternalBalancer => {
            let frontend = estate::internal_frontend(lab)?;
            let (id, mut body) = balancer(lab.site(), "refused-lb", frontend);
            let network = estate::network(lab)?;
            body["properties"]["backendAddressPools"][0]["properties"] = json!({
                "virtualNetwork": {"id": network}, "loadBalancerBackendAddresses": [
                    {"name": "a", "properties": {"ipAddress": "10.77.0.200"}}]});
            (id, body)
        }
        Base::ScaleSet => {
            let id = lab.site().id(estate::SET, "refused-set");
            (id, estate::scale_set_body(lab.site()))
        }
    })
}

fn named(site: &Site, name: String) -> (ResourceId, Value) {
    (site.id_named(estate::PIP, &name), estate::address_body(site, "Standard"))
}

fn balancer(site: &Site, short: &str, frontend: Value) -> (ResourceId, Value) {
    let id = site.id(estate::LB, short);
    let body = estate::balancer_body(site, &id, frontend);
    (id, body)
}
