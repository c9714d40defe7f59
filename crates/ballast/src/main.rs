//! The `ballast` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    ballast::program::main()
}
