//! A fixed set of seeds, and every seed that once failed.

use sim::actor::ACTORS;
use sim::crew;
use sim::fault::{Fault, LATER};
use sim::run::{Settings, Tracing, run};
use sim::shrink::shrink;
use sim::swarm::{PROFILES, Profile};
use std::collections::BTreeSet;
use std::num::NonZero;
use std::thread::available_parallelism;

/// Seeds that broke a rule before something was mended, and what that was.
const ONCE_FAILED: &[(u64, Profile, &str)] = &[
    (
        54,
        Profile::Containers,
        "both kinds told one address of a Service that moved, again and again",
    ),
    (378, Profile::Containers, "a deleted public IP ended what it served of a Service that moved"),
    (4, Profile::All, "a status was without an address whose frontend got another name"),
    (13, Profile::All, "additional addresses were closed while the Service's frontend changed"),
    (22, Profile::All, "what could not be read any more was taken for gone: finalizer too early"),
    (
        83,
        Profile::All,
        "what could not be read any more was taken for gone: load balancer replaced",
    ),
    (2, Profile::All, "a process waited for a quota by waking again and again"),
    (18, Profile::All, "a node's address stayed open after it had left its pool: a rule left over"),
    (240, Profile::All, "the same with a node that was excluded first"),
    (109, Profile::All, "judged in the middle of a look for drift"),
    (205, Profile::All, "the same with one process"),
    (265_388_007, Profile::All, "a list of several pages left one out: finalizer too early"),
    (1_409, Profile::All, "a rule to a brought IP that was left before status told of it"),
    (1_763, Profile::All, "the same in the run without faults"),
    (1_601, Profile::All, "a load balancer deleted by hand stayed known: every list was doubted"),
    (157, Profile::All, "status forgot an address that was still open in the security group"),
    (1_123, Profile::All, "status told an address while a write was moving the frontend away"),
    (1_526, Profile::All, "a node's address was opened before it was in a pool: a rule left over"),
    (1_296, Profile::All, "compared rules to nodes although Services were placed elsewhere"),
    (1_566, Profile::All, "took a list of one address for something else than the one"),
    (1_408, Profile::All, "judged as unasked what was made for an earlier wish"),
    (2_053, Profile::All, "judged the address in a write of the condition alone"),
    (2_840, Profile::All, "a token expired while zones were read: public IPs without zones"),
    (7_473, Profile::All, "woke again and again for a read that waited for a write"),
    (2_786, Profile::All, "believed what a load balancer showed while it was being changed"),
    (3_829, Profile::All, "believed what a security group showed while it was being changed"),
    (6_379, Profile::All, "judged making again what was deleted since"),
    (912, Profile::All, "judged one of two places as taken away unasked"),
    (7_285, Profile::All, "compared a pool that no rule of ours leads to"),
    (547, Profile::All, "compared a DNS label that no Service asks for any more"),
    (281_192_053, Profile::All, "status told an address while its write could still be canceled"),
    (3_278, Profile::All, "the same after a restart"),
    (3_192, Profile::All, "a table that is read after a write was waited for by waking"),
    (3_928, Profile::All, "the same with the other table"),
    (2_219, Profile::All, "a Pod lost the mark of an egress gateway before another Pod had it"),
    (4_438, Profile::All, "a node that was going left its pool for one that took it no more"),
    (
        5_448,
        Profile::All,
        "Azure lost the pool that remembered the address of a node that was gone",
    ),
    (6_483, Profile::All, "a frontend left an address that a write under way was opening"),
    (7_054, Profile::All, "a gone node left its pool while a write under way was opening it"),
    (4_496, Profile::All, "a process that stood still and died sent a request all the same"),
    (4_641, Profile::All, "compared a DNS label that no Service asks for any more"),
    (156, Profile::All, "a public IP was deleted before the rule that led to its address"),
    (172, Profile::All, "a write that gathers others waited behind one under way: spinning"),
    (1_571, Profile::All, "a rule to a brought IP that was left before status told of it"),
    (1_769, Profile::All, "the same"),
    (2_391, Profile::All, "the same"),
    (1_983, Profile::All, "judged the address in a write of the condition alone"),
    (1_442, Profile::All, "judged beside a Service whose finalizer had been stripped"),
    (8_657, Profile::All, "compared a pool that no rule of ours leads to"),
    (9_639, Profile::All, "judged making again what was deleted since"),
    (3_952, Profile::All, "a public IP for a Service that the process before had let go"),
    (11_360, Profile::All, "the same"),
    (13_629, Profile::All, "judged a refusal that a process standing still had not seen"),
    (13_690, Profile::All, "a list was not believed because of a write that was refused"),
    (13_969, Profile::All, "a failed public IP held up its load balancer for everybody"),
    (17_484, Profile::All, "a list that came during a refused write was not believed"),
    (308, Profile::All, "judged a frontend that came back with a canceled operation"),
    (631, Profile::All, "judged a late deletion of what was being deleted"),
    (19_008, Profile::All, "judged a status that was on its way when its process died"),
    (20_016, Profile::All, "a new leader took ready Pods away: it had read one table too early"),
    (20_016, Profile::Containers, "the same"),
    (600_000_078, Profile::Containers, "judged while what people deleted was still going"),
    (700_000_210, Profile::Containers, "the same"),
    (17, Profile::Containers, "a write that ended while its table was unread was others'"),
    (500_001_510, Profile::All, "judged while Azure worked at the write of a neighbour"),
    (
        500_000_883,
        Profile::All,
        "whether writes gather longer hung on who was due: round and round",
    ),
    (500_002_538, Profile::All, "a label was taken, by the public IP that its own Service leaves"),
    (500_002_791, Profile::All, "a row of a service whose registration others had taken away"),
    (500_002_635, Profile::All, "a Service that was refused alone was searched for again"),
    (800_000_068, Profile::Containers, "the same"),
    (500_002_717, Profile::All, "somebody made a load balancer anew that was deleted by then"),
    (
        910_000_072,
        Profile::All,
        "who won the lease read the ledger before the time was over that the API server asked for",
    ),
    (
        913_000_128,
        Profile::All,
        "a Service was placed before its namespace had been seen, and moved at once",
    ),
    (
        720_000_048,
        Profile::Containers,
        "an address was sent and status told of it while the Service was being unregistered",
    ),
    (
        514_000_106,
        Profile::All,
        "Azure gave the address of a Service on its way to another load balancer to a new one",
    ),
    (
        916_000_259,
        Profile::All,
        "who won the lease back read the ledger before the pause after its failures was over",
    ),
];

/// Seeds that failed with every fault that is drawn today: they run with the other tests.
const FAILED_LAST: &[(u64, Profile, &str)] = &[
    (
        24_110_055,
        Profile::All,
        "a Service on a BYO address waited for a frontend that a refused Service keeps",
    ),
    (24_110_134, Profile::All, "who took over wrote on lists that it had read as a standby"),
    (24_130_163, Profile::All, "judged a write by an edit that its process had not seen"),
    (24_130_171, Profile::All, "connections of a link were cut while its frontend was written"),
    (24_150_167, Profile::All, "judged whose a node is where one has Local Services only"),
    (24_200_146, Profile::Containers, "judged before an owner had made anew what was deleted late"),
    (
        662_606_000,
        Profile::All,
        "a Service wanted again what the ledger on its way no longer had, and it was opened",
    ),
    (662_606_007, Profile::All, "another status to write, and the failures before were forgotten"),
    (662_606_022, Profile::All, "judged a node that joins by the one that had its address before"),
    (
        900_202,
        Profile::All,
        "one family's public IP was made again, and the other family's address was untold",
    ),
    (
        900_220,
        Profile::All,
        "refused half-way to the load balancer where others keep the address that it shares",
    ),
    (1_100_050, Profile::All, "reported drift hid a security rule to an address that was released"),
    (1_100_164, Profile::All, "the time of a stage was told by a clock that was hours ahead"),
    (
        680_483_006,
        Profile::All,
        "a scale set whose model alone was in a pool kept addresses out of it",
    ),
    (1_100_328, Profile::All, "the maker of a frontend counted on it after it had moved away"),
    (
        2_026_112_900_080,
        Profile::All,
        "compared tags of a security group that was written on a way over nodes alone",
    ),
    (
        2_026_112_900_113,
        Profile::All,
        "nodes joined a load balancer while a list lacked that of a Service without an address",
    ),
    (2_026_113_000_308, Profile::All, "compared the pools of a node that was about to be deleted"),
    (
        2_026_113_000_051,
        Profile::All,
        "compared the network of a pool that had no address any more",
    ),
    (
        2_026_113_000_471,
        Profile::All,
        "compared a rule of a Service that had the name of a stripped one by an earlier owner's",
    ),
];

/// The same with faults that came later, and with which of them.
const FAILED_LATER: &[(u64, &[Fault], &str)] = &[
    (
        2_809,
        &[Fault::Vandal, Fault::Slices, Fault::Families, Fault::Links],
        "a scale set's model held on to a load balancer that was to go",
    ),
    (
        63_702,
        &[Fault::Vandal, Fault::Slices],
        "status told a new address before a container load balancer led there",
    ),
    (9_055, &[Fault::Vandal, Fault::Slices], "a rule to a brought IP whose frontend was gone"),
    (20_105, &[Fault::Vandal, Fault::Slices], "a list that was asked for too early let go"),
    (101_006, &[Fault::Vandal, Fault::Slices], "the same, in pages"),
    (
        301_309,
        &[Fault::Vandal, Fault::Slices],
        "lists did not show yet what a Service had: it was moved",
    ),
    (1_748, &[Fault::Vandal, Fault::Slices], "a finalizer that came late was taken for our own"),
    (
        301_330,
        &[Fault::Vandal, Fault::Slices],
        "a list showed what was being made: it counted as read, and was not believed",
    ),
    (
        700_001_100,
        &[Fault::Vandal, Fault::Slices, Fault::Families, Fault::Links],
        "the search for a refused Service held one half back and let it in again without a wait",
    ),
    (4_612, &[Fault::Vandal, Fault::Slices], "judged a table's write by who led before"),
    (99, LATER, "a new leader's old lists took an address out of a status"),
    (170, LATER, "the same"),
    (181, LATER, "the same"),
    (500_000_365, LATER, "with driftPolicy report, a write that was not read back was others'"),
    (500_001_271, LATER, "a frontend outlived its Service and the last rule of another on it"),
    (500_002_018, LATER, "the same without faults"),
    (500_000_673, LATER, "judged the row of a Service that goes, unregistered by hand before"),
    (500_000_728, LATER, "the same of a Service whose finalizer was stripped"),
    (500_000_535, LATER, "judged the Private Link Service of a stripped Service"),
    (500_000_739, LATER, "the same"),
    (500_000_866, LATER, "judged Services that share the frontend of a stripped Service"),
    (500_000_982, LATER, "judged the pool of a Local Service without the rules left out of it"),
    (500_001_594, LATER, "the same"),
    (500_002_316, LATER, "a frontend moved to another address, and its rule stayed taken away"),
    (500_001_597, LATER, "the same with several Services"),
    (500_001_840, LATER, "an owner's ports kept node ports that a new Service would not have"),
    (500_001_687, LATER, "a new leader's old list showed a public IP to be made anew"),
    (500_001_892, LATER, "judged addresses of a registration that no load balancer leads to"),
    (511_000_443, LATER, "a new leader closed rules by the ledger of its last term"),
    (511_000_653, LATER, "judged a status while what people deleted was still going"),
    (511_000_610, LATER, "judged what a deposed leader's late write had made"),
    (512_000_242, LATER, "a Service waited for what one of its name had left behind"),
    (512_000_225, LATER, "who shared a frontend waited for its owner, who had left for another's"),
];

/// What a seed breaks.
fn breach(seed: u64, settings: &Settings) -> Option<String> {
    let breach = run(seed, settings).breach?;
    let profile = settings.profile.name();
    Some(format!("seed {seed} of {profile} breaks {}: {}", breach.rule, breach.text))
}

/// What these seeds break, in their order, simulated on every processor.
fn breaches(seeds: &[(u64, Settings)]) -> Vec<String> {
    let jobs = available_parallelism().map_or(1, NonZero::get);
    let found = crew::all(seeds, jobs, |(seed, settings)| breach(*seed, settings));
    found.into_iter().flatten().collect()
}

#[test]
fn every_rule_holds_for_the_fixed_seeds() {
    let all = (1_000..1_012).map(|seed| (seed, Settings::default()));
    let each = PROFILES
        .iter()
        .map(|(profile, _)| (7, Settings { profile: *profile, ..Settings::default() }));
    assert_eq!(breaches(&all.chain(each).collect::<Vec<_>>()), Vec::<String>::new());
}

/// Seeds without the faults that came later.
fn early(seeds: &[(u64, Profile, &str)]) -> Vec<(u64, Settings)> {
    let without: BTreeSet<_> = LATER.iter().copied().collect();
    let settings = |profile| Settings { profile, without: without.clone(), ..Settings::default() };
    seeds.iter().map(|(seed, profile, _)| (*seed, settings(*profile))).collect()
}

#[test]
fn what_was_mended_last_stays_mended() {
    let all = FAILED_LAST
        .iter()
        .map(|(seed, profile, _)| (*seed, Settings { profile: *profile, ..Settings::default() }));
    assert_eq!(breaches(&all.collect::<Vec<_>>()), Vec::<String>::new());
}

/// What is drawn has changed since, so that these are seeds like any other by now.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "minutes without optimisation: cargo test --release -p sim --test it seeds::"
)]
fn what_was_mended_stays_mended() {
    let later = FAILED_LATER.iter().map(|(seed, with, _)| {
        let without = LATER.iter().copied().filter(|fault| !with.contains(fault)).collect();
        (*seed, Settings { without, ..Settings::default() })
    });
    let all: Vec<_> = early(ONCE_FAILED).into_iter().chain(later).collect();
    assert_eq!(breaches(&all), Vec::<String>::new());
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let settings = Settings { tracing: Tracing::On, ..Settings::default() };
    let (one, two) = (run(5, &settings), run(5, &settings));
    assert!(one.trace.len() > 50, "something happens: {} lines", one.trace.len());
    assert_eq!(one.trace, two.trace);
    assert_eq!(one.tally, two.tally);
}

#[test]
fn a_failing_seed_is_made_smaller() {
    let canary = Some(sim::canary::Canary::ForgetsFinalizer);
    let settings = Settings { canary, ..Settings::default() };
    let first = run(3, &settings);
    let rule = first.breach.expect("the canary is caught").rule;
    let (small, outcome) = shrink(3, &settings, rule);
    assert_eq!(outcome.breach.map(|breach| breach.rule), Some(rule));
    assert!(small.moves.is_some_and(|moves| moves <= 3), "{:?}", small.moves);
    let users: BTreeSet<_> = ACTORS.iter().map(|(actor, _)| *actor).collect();
    let left: Vec<_> = users.difference(&small.without_actors).collect();
    assert!(left.len() <= 1, "one actor is enough: {left:?}");
}
