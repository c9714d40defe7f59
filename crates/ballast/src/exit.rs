//! How the program ends.

use std::fmt;

/// What the exit code says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done; with `plan --exit-code`: nothing to do.
    Done,
    /// It failed; with `lint`: there are errors, or with `--strict` warnings.
    Failed,
    /// `plan --exit-code`: there are changes; `orphans`: something is left over; `azure-check` and
    /// `azure-emulator --compare`: something differs.
    Changes,
    /// Wrong flags, or a wrong cloud config.
    Usage,
    /// Input that cannot be used: a manifest, a file of Azure resources.
    Input,
    /// A cluster, Azure or a running controller cannot be reached.
    Unavailable,
    /// A mistake of Ballast's own.
    Internal,
    /// A file cannot be written, or a port is taken.
    Blocked,
    /// A credential is missing or was rejected.
    Credential,
}

impl Exit {
    /// The number.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Changes => 2,
            Self::Usage => 64,
            Self::Input => 65,
            Self::Unavailable => 69,
            Self::Internal => 70,
            Self::Blocked => 73,
            Self::Credential => 77,
        }
    }
}

/// The codes, as `--help` shows them.
pub const HELP: &str = "\
Exit codes:
   0  done; with `plan --exit-code`: nothing to do
   1  failed; with `lint`: there are errors, or with `--strict` warnings
   2  with `plan --exit-code`: there are changes; with `orphans`: something is left over;
      with `azure-check` and `azure-emulator --compare`: something differs
  64  wrong flags, or a wrong cloud config
  65  a manifest, or a file of Azure resources, cannot be used
  69  the cluster, Azure or a running controller cannot be reached
  70  internal error
  73  a file cannot be written, or a port is taken
  77  a credential is missing or was rejected";

/// A failure: what was attempted, on what, why it failed, what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What the exit code says.
    pub exit: Exit,
    /// For people; several lines where several things are wrong.
    pub text: String,
}

impl Failure {
    /// Puts the two together.
    #[must_use]
    pub fn new(exit: Exit, text: impl fmt::Display) -> Self {
        Self { exit, text: text.to_string() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

/// What a command comes to.
pub type Outcome = Result<Exit, Failure>;
