//! scratch
use sim::canary::CANARIES;
use sim::exhaust::*;
use sim::run::{Settings, run};
use sim::scene::LAYOUTS;
fn main() {
    if std::env::args().nth(1).as_deref() == Some("c") {
        for c in CANARIES {
            let skip: usize = std::env::args().nth(2).and_then(|n| n.parse().ok()).unwrap_or(0);
            if CANARIES.iter().position(|k| k == c).unwrap() < skip { continue; }
            let mut hit = None;
            for seed in 0..60 {
                let profile = match c.name() { "ignores-lease" => sim::swarm::Profile::Leaders, "no-back-off"|"ignores-retry-after"|"empties-pool-on-error" => sim::swarm::Profile::Azure, "believes-half-list" => sim::swarm::Profile::Kubernetes, "writes-twice"|"writes-when-quiet" => sim::swarm::Profile::Calm, _ => Default::default() };
                let s = Settings { canary: Some(*c), profile, ..Settings::default() };
                let Ok(o) = std::panic::catch_unwind(|| run(seed, &s)) else {
                    println!("PANIC {} {seed}", c.name());
                    continue;
                };
                if let Some(b) = o.breach {
                    let plain = run(seed, &Settings { profile, ..Settings::default() });
                    if plain.breach.is_some() {
                        continue;
                    }
                    hit = Some((seed, b));
                    break;
                }
            }
            match hit {
                Some((s, b)) => println!(
                    "{:24} {} after {} seeds: {}",
                    c.name(),
                    b.rule,
                    s + 1,
                    b.text.chars().take(110).collect::<String>()
                ),
                None => println!("{:24} NOT CAUGHT", c.name()),
            }
        }
        return;
    }
    let mut all = 0;
    for (layout, l) in LAYOUTS {
        for (scenario, s) in SCENARIOS {
            if suits(scenario, layout) {
                let p = enumerate(scenario, layout, 40);
                all += p.all();
                println!("{l} {s}: {} {} {} wrong {}", p.crashes, p.losses, p.swaps, p.wrong.len());
                for w in p.wrong.iter().take(2) {
                    println!("    {}", w.chars().take(420).collect::<String>());
                }
            }
        }
    }
    println!("{all} points");
}
