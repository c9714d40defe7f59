#![no_main]

use ballast_fuzz::{Settled, service_plan};
use std::sync::LazyLock;

static SETTLED: LazyLock<Settled> = LazyLock::new(Settled::new);

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| service_plan(&SETTLED, bytes));
