//! What goes wrong, and when: drawn from a seed, or written down beforehand.

mod spells;

use self::spells::{ApiSpell, Spell, reads_zones};
use crate::election::Ordeal;
use crate::fault::Fault;
use crate::random::Random;
use crate::swarm::Swarm;
use arm::{Method, Request, Target};
use control::Effect;
use std::collections::BTreeMap;

/// Faults of one Azure call, with the calls they suit.
const CALLS: &[(Fault, Suits)] = &[
    (Fault::QuotaWithHeader, Suits::Every),
    (Fault::QuotaWithoutHeader, Suits::Every),
    (Fault::QuotaInBody, Suits::Every),
    (Fault::LockThrottled, Suits::Writes),
    (Fault::NotProvisioned, Suits::Writes),
    (Fault::GatewayThrottled, Suits::Every),
    (Fault::OtherOperation, Suits::Writes),
    (Fault::ScopeLocked, Suits::Writes),
    (Fault::Precondition, Suits::Writes),
    (Fault::Refused, Suits::Writes),
    (Fault::Forbidden, Suits::Writes),
    (Fault::GroupMissing, Suits::Creations),
    (Fault::TokenExpired, Suits::Every),
    (Fault::TokenEndpointDown, Suits::Every),
    (Fault::ServerError, Suits::Every),
    (Fault::Preempted, Suits::Compute),
    (Fault::ParentMissing, Suits::Compute),
    (Fault::Superseded, Suits::Changes),
    (Fault::LosesPool, Suits::Balancers),
    (Fault::OperationFails, Suits::Changes),
    (Fault::Stuck, Suits::Changes),
    (Fault::ErrorIn200, Suits::Tables),
    (Fault::AcceptedThenFails, Suits::Tables),
    (Fault::ResetBefore, Suits::Every),
    (Fault::ResetAfter, Suits::Every),
    (Fault::Truncated, Suits::Every),
    (Fault::Hang, Suits::Every),
    (Fault::Slow, Suits::Every),
    (Fault::StaleList, Suits::Reads),
];

const API_CALLS: &[Fault] = &[
    Fault::ApiThrottled,
    Fault::ApiError,
    Fault::ApiUnavailable,
    Fault::ApiConflict,
    Fault::ApiAnswerLostApplied,
    Fault::ApiAnswerLostNotApplied,
];

/// Faults of one delivery of a watch.
pub const WATCHES: &[Fault] = &[
    Fault::WatchExpired,
    Fault::WatchBroken,
    Fault::WatchDuplicate,
    Fault::WatchReplay,
    Fault::WatchPartial,
    Fault::Bookmark,
];

/// By how many revisions a list is older than now, where that is written down.
const OLDER: u64 = 6;
/// By how much a delivery of a watch is late, where that is written down.
const LAG_MS: u64 = 8_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Suits {
    Every,
    Reads,
    Writes,
    /// PUT: a DELETE that is told so may take the resource for gone.
    Creations,
    /// PUT and DELETE.
    Changes,
    Balancers,
    Compute,
    Tables,
}

impl Suits {
    fn fits(self, request: &Request) -> bool {
        let write = request.method.is_write();
        let (Target::Path(path) | Target::Url(path)) = &request.target;
        match self {
            Self::Every => true,
            Self::Reads => !write && matches!(request.target, Target::Path(_)),
            Self::Writes => write,
            Self::Creations => request.method == Method::Put,
            Self::Changes => matches!(request.method, Method::Put | Method::Delete),
            Self::Balancers => request.method == Method::Put && path.contains("/loadBalancers/"),
            Self::Compute => write && path.contains("/Microsoft.Compute/"),
            Self::Tables => request.method == Method::Post && path.contains("/serviceGateways/"),
        }
    }
}

/// When the process dies around an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Crash {
    /// It does not.
    None,
    /// Before the effect is carried out.
    Before,
    /// After it was carried out; its answer reaches nobody.
    After,
}

/// What is done to numbered things in a run that is written down beforehand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// The process dies at this effect.
    pub crash: Option<(u64, Side)>,
    /// It dies at this later one, too, while it recovers from something else.
    pub second_crash: Option<(u64, Side)>,
    /// This fault befalls this call; the last number decides its details.
    pub fault: Option<(u64, Fault, u64)>,
    /// This fault befalls this delivery of a watch.
    pub watch: Option<(u64, Fault)>,
    /// The answer of this call is lost.
    pub lose: Option<(u64, Side)>,
    /// These two calls' answers change places.
    pub swap: Option<(u64, u64)>,
    /// Between its look at the lease and the sending of this call, the process stands still for so
    /// many milliseconds.
    pub pause: Option<(u64, u64)>,
}

impl Script {
    fn crash_at(&self, effect: u64) -> Crash {
        let crashes = [self.crash, self.second_crash];
        match crashes.into_iter().flatten().find(|(at, _)| *at == effect) {
            Some((_, Side::Before)) => Crash::Before,
            Some((_, Side::After)) => Crash::After,
            None => Crash::None,
        }
    }

    fn fault_at(&self, call: u64) -> Option<(Fault, u64)> {
        let found = self.fault.filter(|(at, ..)| *at == call);
        found.map(|(_, fault, number)| (fault, number))
    }

    fn watch_at(&self, delivery: u64) -> Option<Fault> {
        self.watch.filter(|(at, _)| *at == delivery).map(|(_, fault)| fault)
    }
}

/// Faults that may befall the call of an effect. A loss of its answer is none of them.
#[must_use]
pub fn suiting(effect: &Effect) -> Vec<Fault> {
    let lost = [
        Fault::ResetBefore,
        Fault::ResetAfter,
        Fault::ApiAnswerLostApplied,
        Fault::ApiAnswerLostNotApplied,
    ];
    let mut all: Vec<Fault> = match effect {
        Effect::Azure { request, .. } => {
            CALLS.iter().filter(|(_, suits)| suits.fits(request)).map(|(fault, _)| *fault).collect()
        }
        Effect::Kubernetes { .. } => API_CALLS.to_vec(),
        Effect::Say(_) => Vec::new(),
    };
    all.retain(|fault| !lost.contains(fault));
    all
}

/// Before or after a thing takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Before: it never does.
    Before,
    /// After: nobody learns of it.
    After,
}

/// Where faults come from.
#[derive(Clone, Debug)]
pub enum Weather {
    /// Nothing goes wrong.
    Fair,
    /// Drawn.
    Drawn(Box<Drawn>),
    /// Written down.
    Scripted(Script),
}

/// Draws faults by strength.
#[derive(Clone, Debug)]
pub struct Drawn {
    strengths: BTreeMap<Fault, u64>,
    muted: BTreeMap<Fault, u64>,
    spell: Option<Spell>,
    spells: Random,
    api_spell: Option<ApiSpell>,
    api_spells: Random,
    rights: Random,
    /// How often something befell a read of the region's zones.
    refused_lists: u32,
    azure: Random,
    api: Random,
    watch: Random,
    crash: Random,
    lag: Random,
    clock: Random,
    lease: Random,
}

impl Drawn {
    /// The weather of a seed's swarm.
    #[must_use]
    pub fn new(swarm: &Swarm, random: &Random) -> Self {
        Self {
            strengths: swarm.strengths.clone(),
            muted: swarm.muted.clone(),
            spell: None,
            spells: random.fork("spells"),
            api_spell: None,
            api_spells: random.fork("spells of the API server"),
            rights: random.fork("rights"),
            refused_lists: 0,
            azure: random.fork("weather of Azure"),
            api: random.fork("weather of the API server"),
            watch: random.fork("weather of watches"),
            crash: random.fork("crashes"),
            lag: random.fork("lag"),
            clock: random.fork("clocks"),
            lease: random.fork("weather of the Lease"),
        }
    }

    /// How hard a fault is drawn, muted or not.
    fn strength(&self, fault: Fault) -> u64 {
        let drawn = self.strengths.get(&fault).or_else(|| self.muted.get(&fault));
        drawn.copied().unwrap_or(0)
    }

    /// The first of these faults that is drawn, muted or not.
    fn draw(&mut self, faults: &[Fault], random: fn(&mut Self) -> &mut Random) -> Option<Fault> {
        faults.iter().copied().find(|fault| {
            let strength = self.strength(*fault);
            strength > 0 && random(self).permille(strength)
        })
    }

    /// The first of these faults that befalls, unless it is muted.
    fn first(&mut self, faults: &[Fault], random: fn(&mut Self) -> &mut Random) -> Option<Fault> {
        self.draw(faults, random).filter(|fault| self.is_heard(*fault))
    }

    /// What befalls a call on the Lease.
    pub(crate) fn lease_ordeal(&mut self) -> Ordeal {
        let strength = self.strengths.get(&Fault::LeaseCalls).copied().unwrap_or(0);
        if strength == 0 || !self.lease.permille(strength * 4) {
            return Ordeal::default();
        }
        if self.lease.permille(300) {
            return Ordeal { fault: None, late_ms: self.lease.between(500, 9_000) };
        }
        Ordeal { fault: Some(*self.lease.pick(API_CALLS)), late_ms: 0 }
    }

    pub(crate) fn lease_lag(&mut self, usual_ms: u64) -> u64 {
        self.lease.between(usual_ms / 2, usual_ms * 2)
    }

    pub(crate) fn lease_spread(&mut self) -> u64 {
        self.lease.below(1_001)
    }

    fn is_heard(&self, fault: Fault) -> bool {
        !self.muted.contains_key(&fault)
    }
}

impl Weather {
    /// What befalls a numbered Azure call, with a number to draw details from.
    pub fn azure(&mut self, request: &Request, call: u64) -> Option<(Fault, u64)> {
        let drawn = match self {
            Self::Fair => return None,
            Self::Scripted(script) => return script.fault_at(call),
            Self::Drawn(drawn) => drawn,
        };
        if drawn.hides_zones(request) {
            return Some((Fault::Forbidden, 0));
        }
        if let Some(again) = drawn.goes_on(request) {
            return Some(again);
        }
        for (fault, suits) in CALLS {
            let strength = drawn.strength(*fault);
            if strength > 0 && suits.fits(request) && drawn.azure.permille(strength) {
                let number = drawn.azure.draw();
                drawn.begin_spell(request, *fault);
                drawn.refused_lists += u32::from(reads_zones(request));
                return drawn.is_heard(*fault).then_some((*fault, number));
            }
        }
        None
    }

    /// What befalls a numbered call to the API server.
    pub fn api(&mut self, path: &str, call: u64) -> Option<Fault> {
        let drawn = match self {
            Self::Fair => return None,
            Self::Scripted(script) => return script.fault_at(call).map(|(fault, _)| fault),
            Self::Drawn(drawn) => drawn,
        };
        // Drawn whatever goes on, so that the faults of later calls stay as they are.
        let fault = drawn.draw(API_CALLS, |drawn| &mut drawn.api);
        let again = drawn.api_goes_on(path);
        if let Some(fault) = fault.filter(|_| again.is_none()) {
            drawn.begin_api_spell(path, fault);
        }
        again.or(fault).filter(|fault| drawn.is_heard(*fault))
    }

    /// What befalls a numbered delivery of a watch.
    pub fn watch(&mut self, delivery: u64) -> Option<Fault> {
        match self {
            Self::Fair => None,
            // A list is only old where it takes the place of a watch.
            Self::Scripted(script) => match script.watch_at(delivery)? {
                Fault::StaleRelist => Some(Fault::WatchBroken),
                Fault::WatchLag => None,
                fault => Some(fault),
            },
            Self::Drawn(drawn) => drawn.first(WATCHES, |drawn| &mut drawn.watch),
        }
    }

    /// How much older than now the list of a numbered delivery is, in revisions.
    pub fn stale_relist(&mut self, delivery: u64) -> Option<u64> {
        let drawn = match self {
            Self::Fair => return None,
            Self::Scripted(script) => {
                return (script.watch_at(delivery) == Some(Fault::StaleRelist)).then_some(OLDER);
            }
            Self::Drawn(drawn) => drawn,
        };
        let strength = drawn.strength(Fault::StaleRelist);
        let older = (strength > 0 && drawn.watch.permille(strength * 4))
            .then(|| drawn.watch.between(1, 12));
        older.filter(|_| drawn.is_heard(Fault::StaleRelist))
    }

    /// Whether the process dies around an effect.
    pub fn crash(&mut self, effect: u64) -> Crash {
        match self {
            Self::Fair => Crash::None,
            Self::Scripted(script) => script.crash_at(effect),
            Self::Drawn(drawn) => {
                let (before, after) =
                    (drawn.strength(Fault::CrashBefore), drawn.strength(Fault::CrashAfter));
                let (crash, fault) = if before > 0 && drawn.crash.permille(before) {
                    (Crash::Before, Fault::CrashBefore)
                } else if after > 0 && drawn.crash.permille(after) {
                    (Crash::After, Fault::CrashAfter)
                } else {
                    return Crash::None;
                };
                if drawn.is_heard(fault) { crash } else { Crash::None }
            }
        }
    }

    /// For how long the process stands still before it sends a numbered call.
    pub fn pause_ms(&mut self, call: u64) -> Option<u64> {
        let drawn = match self {
            Self::Fair => return None,
            Self::Scripted(script) => {
                return script.pause.filter(|(at, _)| *at == call).map(|(_, ms)| ms);
            }
            Self::Drawn(drawn) => drawn,
        };
        let strength = drawn.strength(Fault::Pause);
        let pause_ms = (strength > 0 && drawn.crash.permille(strength.div_ceil(4)))
            .then(|| *drawn.crash.pick(&[3_000, 12_000, 25_000, 90_000, 240_000]));
        pause_ms.filter(|_| drawn.is_heard(Fault::Pause))
    }

    /// Whether a numbered call's answer is lost.
    #[must_use]
    pub fn lose(&self, call: u64) -> Option<Side> {
        match self {
            Self::Scripted(Script { lose: Some((at, side)), .. }) if *at == call => Some(*side),
            _ => None,
        }
    }

    /// The numbered call whose answer changes places with this one's.
    #[must_use]
    pub fn swap(&self, call: u64) -> Option<u64> {
        match self {
            Self::Scripted(Script { swap: Some((one, two)), .. }) if *one == call => Some(*two),
            Self::Scripted(Script { swap: Some((one, two)), .. }) if *two == call => Some(*one),
            _ => None,
        }
    }

    /// How far the clock of a process that starts is off, in milliseconds.
    pub fn skew_ms(&mut self) -> i64 {
        let Self::Drawn(drawn) = self else { return 0 };
        if !drawn.strengths.contains_key(&Fault::WrongClock) {
            return 0;
        }
        *drawn.clock.pick(&[0, -86_400_000, -3_600_000, -40_000, 40_000, 3_600_000, 86_400_000])
    }

    /// How much later than usual something arrives.
    pub fn jitter_ms(&mut self, usual_ms: u64) -> u64 {
        let Self::Drawn(drawn) = self else { return usual_ms };
        if usual_ms == 0 { 0 } else { drawn.lag.between(usual_ms / 2, usual_ms * 2) }
    }

    /// How much later a numbered delivery of a watch brings something, where that is a fault.
    pub fn watch_lag_ms(&mut self, delivery: u64) -> Option<u64> {
        let drawn = match self {
            Self::Fair => return None,
            Self::Scripted(script) => {
                return (script.watch_at(delivery) == Some(Fault::WatchLag)).then_some(LAG_MS);
            }
            Self::Drawn(drawn) => drawn,
        };
        let strength = drawn.strength(Fault::WatchLag);
        let lag_ms = (strength > 0 && drawn.lag.permille(strength * 4))
            .then(|| drawn.lag.between(100, 15_000));
        lag_ms.filter(|_| drawn.is_heard(Fault::WatchLag))
    }
}
