//! What a seed draws: the scene, which faults are on and how hard, how much is done.

use crate::fault::{FAULTS, Fault, LATER};
use crate::random::Random;
use crate::scene::{LAYOUTS, Layout, Scene};
use std::collections::{BTreeMap, BTreeSet};

named! {
    /// What seeds may draw.
    #[derive(Default)]
    pub enum Profile;
    /// Every profile.
    pub const PROFILES;
    #[default] All, "all", "everything";
    Calm, "calm", "no faults: what it costs is counted";
    Azure, "azure", "Azure's faults only";
    Kubernetes, "kubernetes", "faults of the API server and its watches only";
    Crashes, "crashes", "crashes and pauses only";
    Leaders, "leaders", "two processes and a lease, in every seed";
    Containers, "containers", "every fault, container load balancers only";
}

impl Profile {
    fn allows(self, fault: Fault) -> bool {
        let process = matches!(
            fault,
            Fault::CrashBefore | Fault::CrashAfter | Fault::CrashIdle | Fault::Pause
        );
        let people = fault >= Fault::HandEdits;
        let azure = matches!(fault, Fault::LateAddress | Fault::GatewayReply | Fault::Buckets);
        match self {
            Self::All | Self::Containers => true,
            Self::Calm => false,
            Self::Azure => fault < Fault::ApiThrottled || people,
            Self::Kubernetes => {
                (Fault::ApiThrottled..Fault::CrashBefore).contains(&fault)
                    || fault == Fault::FinalizerStripped
                    || (fault > Fault::Vandal && LATER.contains(&fault) && !azure)
            }
            Self::Crashes => process || matches!(fault, Fault::ConfigChanges | Fault::WrongClock),
            Self::Leaders => {
                process || matches!(fault, Fault::TwoLeaders | Fault::ApiDown | Fault::LeaseCalls)
            }
        }
    }
}

/// How long things take when nothing is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// A request to Azure, one way.
    pub azure_ms: u64,
    /// A call to the API server, one way.
    pub api_ms: u64,
    /// A watch event.
    pub watch_ms: u64,
    /// A long-running operation.
    pub operation_ms: u64,
}

/// Everything a seed draws beforehand.
#[derive(Clone, Debug, PartialEq)]
pub struct Swarm {
    /// Where it starts from.
    pub scene: Scene,
    /// Faults that are on, with their chance in a thousand.
    pub strengths: BTreeMap<Fault, u64>,
    /// Faults that are left out although the seed has them on. They are drawn all the same, and
    /// nothing comes of it: what else is drawn stays as it is.
    pub muted: BTreeMap<Fault, u64>,
    /// How long things take.
    pub pace: Pace,
    /// Moves of all actors.
    pub moves: u64,
    /// Within which time they are made, in milliseconds.
    pub horizon_ms: u64,
    /// Services that there may be at a time.
    pub services: u64,
}

const STRENGTHS: [u64; 4] = [3, 10, 30, 90];

impl Swarm {
    /// Draws a seed's swarm.
    #[must_use]
    pub fn draw(random: &Random, profile: Profile, without: &BTreeSet<Fault>) -> Self {
        let mut sizes = random.fork("sizes");
        let mut choice = random.fork("layout");
        let layout = match profile {
            Profile::Containers => Layout::Containers,
            _ => choice.pick(&LAYOUTS).0,
        };
        let mut scene = Scene::draw(layout, &mut random.fork("scene"));
        let calm = random.fork("calm").permille(60) && profile != Profile::Leaders;
        let (mut strengths, mut muted) = (BTreeMap::new(), BTreeMap::new());
        for fault in FAULTS {
            // Each fault has a generator of its own: a new one changes none of the others.
            let mut own = random.fork(fault.name());
            let on = own.permille(fault.chance());
            let strength = *own.pick(&STRENGTHS);
            // A lease is only lost by one who stands still.
            let forced =
                profile == Profile::Leaders && matches!(fault, Fault::TwoLeaders | Fault::Pause);
            // Nor does a later one make a seed without faults one with faults.
            let alone = strengths.is_empty() && muted.is_empty();
            let suits = !alone || !LATER.contains(fault);
            if (on || forced) && suits && !calm && profile.allows(*fault) {
                let drawn = if without.contains(fault) { &mut muted } else { &mut strengths };
                drawn.insert(*fault, strength);
            }
        }
        scene.with = strengths.keys().copied().filter(|fault| LATER.contains(fault)).collect();
        let pace = Pace {
            azure_ms: *sizes.pick(&[0, 5, 40, 150]),
            api_ms: *sizes.pick(&[0, 2, 10]),
            watch_ms: *sizes.pick(&[0, 5, 50]),
            operation_ms: *sizes.pick(&[0, 0, 60, 1_500, 20_000]),
        };
        let moves = sizes.between(5, 40);
        let calm = strengths.is_empty() && muted.is_empty();
        let horizon_ms = if calm { moves * 120_000 } else { sizes.between(20_000, 1_800_000) };
        let services = sizes.between(2, 7);
        Self { scene, strengths, muted, pace, moves, horizon_ms, services }
    }

    /// Whether nothing at all goes wrong.
    #[must_use]
    pub fn is_calm(&self) -> bool {
        self.strengths.is_empty()
    }

    /// Whether a fault is on.
    #[must_use]
    pub fn has(&self, fault: Fault) -> bool {
        self.strengths.contains_key(&fault)
    }
}
