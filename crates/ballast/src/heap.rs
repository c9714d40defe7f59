//! A heap that gives back at once what is free.
//!
//! The program's allocator keeps pages for a while that nobody uses, and asks for huge ones, which
//! makes short work fast. A controller runs for weeks: with 150,000 Pods a quarter of its memory
//! was such room.

/// The allocator's settings (mimalloc's), read once as a process begins: no huge pages, and what
/// is free goes back at once.
#[cfg(unix)]
const SPARING: [(&str, &str); 2] = [("MIMALLOC_ALLOW_THP", "0"), ("MIMALLOC_PURGE_DELAY", "0")];

/// Begins this process anew with a sparing heap, under the same number and with the same arguments,
/// unless somebody has chosen otherwise. Where that cannot be, all goes on as it is.
#[cfg(unix)]
pub fn spare() {
    use std::env;
    use std::os::unix::process::CommandExt;
    if SPARING.iter().any(|(setting, _)| env::var_os(setting).is_some()) {
        return;
    }
    let mut words = env::args_os();
    let Some(called_as) = words.next() else { return };
    let Ok(program) = env::current_exe() else { return };
    let mut anew = std::process::Command::new(program);
    // It returns only if it failed, and then nothing has happened.
    let _ = anew.arg0(called_as).args(words).envs(SPARING).exec();
}

/// Elsewhere a process cannot begin anew under its number.
#[cfg(not(unix))]
pub fn spare() {}
