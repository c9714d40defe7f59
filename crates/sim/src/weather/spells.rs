//! Faults that go on: of one resource's writes, of one object's calls, of one list.

use super::Drawn;
use crate::fault::Fault;
use arm::{Method, Request, Target};

/// How many writes in a row a spell of one fault befalls: few, or so many that who does not pause
/// is seen.
const SPELLS_LAST: [(u64, u64); 4] = [(2, 7), (2, 7), (2, 7), (20, 30)];
/// How many faults of a thousand begin one.
const SPELLS: u64 = 80;

/// How often the region's zones are not shown, in a whole run: one time less than it takes until a
/// process goes on without zones.
const HIDDEN: u32 = 3;

/// Whether a call reads the zones of the region, which the description of a provider has.
pub(super) fn reads_zones(request: &Request) -> bool {
    let (Target::Path(path) | Target::Url(path)) = &request.target;
    let path = path.split('?').next().unwrap_or("");
    request.method == Method::Get && path.ends_with("/providers/Microsoft.Compute")
}

/// What is wrong with one resource, and goes on being wrong: a fault befalls each write of it.
#[derive(Clone, Debug)]
pub(super) struct Spell {
    method: Method,
    target: Target,
    fault: Fault,
    left: u64,
}

/// The same of one object in Kubernetes, by the path of its calls.
#[derive(Clone, Debug)]
pub(super) struct ApiSpell {
    path: String,
    fault: Fault,
    left: u64,
}

impl Drawn {
    /// The fault that goes on befalling the writes of a resource.
    pub(super) fn goes_on(&mut self, request: &Request) -> Option<(Fault, u64)> {
        let spell = self.spell.as_mut()?;
        if spell.method != request.method || spell.target != request.target {
            return None;
        }
        let fault = spell.fault;
        spell.left -= 1;
        if spell.left == 0 {
            self.spell = None;
        }
        Some((fault, self.spells.draw())).filter(|_| self.is_heard(fault))
    }

    /// A fault befalls a write: the next ones of the same resource may have it, too. What Azure
    /// refuses is some Service's part in a write, and goes with it.
    pub(super) fn begin_spell(&mut self, request: &Request, fault: Fault) {
        let lasts = request.method.is_write() && fault != Fault::Refused;
        if lasts && self.spell.is_none() && self.spells.permille(SPELLS) {
            let (least, most) = *self.spells.pick(&SPELLS_LAST);
            let left = self.spells.between(least, most);
            let (method, target) = (request.method, request.target.clone());
            self.spell = Some(Spell { method, target, fault, left });
        }
    }

    /// The fault that goes on befalling the calls on an object, muted or not.
    pub(super) fn api_goes_on(&mut self, path: &str) -> Option<Fault> {
        let spell = self.api_spell.as_mut().filter(|spell| spell.path == path)?;
        let fault = spell.fault;
        spell.left -= 1;
        if spell.left == 0 {
            self.api_spell = None;
        }
        Some(fault)
    }

    /// A fault befalls a call on an object: the next ones of the same object may have it, too. A
    /// Pod that does not get its finalizer in four tries is published without, and what is made for
    /// it then names no Pod: a process that dies then leaves what cannot be known to be ours.
    pub(super) fn begin_api_spell(&mut self, path: &str, fault: Fault) {
        if self.api_spell.is_none() && self.api_spells.permille(SPELLS) {
            let most = if path.contains("/pods/") { 2 } else { 7 };
            let left = self.api_spells.between(2, most);
            self.api_spell = Some(ApiSpell { path: path.to_owned(), fault, left });
        }
    }

    /// Whether the region's zones are not shown, where rights are missing now and then. A few times
    /// in a whole run: a right that is missing for good is another thing. Failures in a row count,
    /// whatever they are for: what else befalls such a read leaves one time less, and where Azure's
    /// buckets may refuse one as well, that is not counted here.
    pub(super) fn hides_zones(&mut self, request: &Request) -> bool {
        let rights = self.strength(Fault::Forbidden) > 0 && self.strength(Fault::Buckets) == 0;
        let may = rights && reads_zones(request);
        let hides = may && self.refused_lists < HIDDEN && self.rights.permille(700);
        self.refused_lists += u32::from(hides);
        hides && self.is_heard(Fault::Forbidden)
    }
}
