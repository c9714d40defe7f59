//! One heap for all threads.
//!
//! The C library of most Linux systems gives threads heaps of their own, and what one frees another
//! cannot use. Facts are read by the threads of the sockets and kept by the one of the controller:
//! with 150,000 Pods a seventh of the memory was room that nobody could use.

/// Begins this process anew with one heap, under the same number and with the same arguments,
/// unless somebody has chosen a number of heaps. Where that cannot be, all goes on as it is.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn take_one() {
    use std::env;
    use std::os::unix::process::CommandExt;
    /// Tells glibc how many heaps there may be. It is read once, as a process begins.
    const HEAPS: &str = "MALLOC_ARENA_MAX";
    if env::var_os(HEAPS).is_some() {
        return;
    }
    let mut words = env::args_os();
    let Some(called_as) = words.next() else { return };
    let Ok(program) = env::current_exe() else { return };
    let mut anew = std::process::Command::new(program);
    // It returns only if it failed, and then nothing has happened.
    let _ = anew.arg0(called_as).args(words).env(HEAPS, "1").exec();
}

/// Other systems' allocators have no such setting.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn take_one() {}
