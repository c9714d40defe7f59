#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ballast_fuzz::controller_steps(bytes));
