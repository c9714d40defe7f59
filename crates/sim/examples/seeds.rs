//! scratch
use sim::run::{Settings, Tracing, run};
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let from: u64 = a[1].parse().unwrap();
    let to: u64 = a[2].parse().unwrap();
    let profile = a.get(3).and_then(|p| sim::swarm::Profile::parse(p)).unwrap_or_default();
    let show = std::env::var("SHOW").is_ok();
    let t = std::time::Instant::now();
    let mut all = sim::tally::Tally::default();
    let mut by: std::collections::BTreeMap<&str, Vec<(u64, String)>> = Default::default();
    for seed in from..to {
        let settings = Settings {
            profile,
            tracing: if show { Tracing::On } else { Tracing::Off },
            ..Settings::default()
        };
        let t1 = std::time::Instant::now();
        let got = std::panic::catch_unwind(|| run(seed, &settings));
        let Ok(o) = got else {
            println!("seed {seed} PANIC");
            continue;
        };
        if t1.elapsed().as_millis() > 1000 {
            println!(
                "seed {seed} slow {:?} steps {} layout {:?}",
                t1.elapsed(),
                o.tally.steps,
                o.tally.layouts
            );
        }
        all.add(&o.tally);
        if show {
            for l in &o.trace {
                println!("{l}");
            }
        }
        if let Some(b) = o.breach {
            by.entry(b.rule).or_default().push((seed, b.text));
        }
    }
    for (rule, list) in &by {
        println!("{rule}: {}", list.len());
        for (s, t) in list.iter().take(12) {
            println!("   seed {s}: {}", t.chars().take(600).collect::<String>());
        }
    }
    let e = t.elapsed().as_secs_f64();
    println!(
        "{} seeds in {e:.1}s: {:.1} ms each; steps/s {:.0}; controller steps {}; sim hours/s {:.1}; writes {}",
        to - from,
        e * 1000.0 / (to - from) as f64,
        all.steps as f64 / e,
        all.controller_steps,
        all.simulated_ms as f64 / 3.6e6 / e,
        all.azure_writes
    );
    if std::env::var("TALLY").is_ok() {
        println!("{:#?}", all);
    }
}
