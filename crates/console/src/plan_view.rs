//! A plan as its page shows it.

/// What is done to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// It comes into being.
    Create,
    /// It changes.
    Change,
    /// It goes away.
    Delete,
    /// An action of it is called.
    Call,
}

impl Verb {
    /// The word for people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Change => "change",
            Self::Delete => "delete",
            Self::Call => "call",
        }
    }
}

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldView {
    /// Where.
    pub path: String,
    /// What it is, as a tree of lines.
    pub old: Option<String>,
    /// What it becomes.
    pub new: Option<String>,
}

/// One resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeView {
    /// What is done.
    pub verb: Verb,
    /// What it is.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its resource group.
    pub group: Option<String>,
    /// Its id.
    pub id: String,
    /// Services on whose account it is written, as `namespace/name`.
    pub services: Vec<String>,
    /// The try that is under way now.
    pub attempt: Option<u32>,
    /// The whole of what is created or sent, as a tree of lines.
    pub body: Option<String>,
    /// What differs in what is changed.
    pub fields: Vec<FieldView>,
}

/// One Kubernetes write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteView {
    /// Service or Pod.
    pub kind: String,
    /// Namespace and name.
    pub object: String,
    /// What is written.
    pub what: String,
}

/// Everything that follows from what is known now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanView {
    /// Azure resources, in the order in which they are written.
    pub changes: Vec<ChangeView>,
    /// Kubernetes writes, in order.
    pub writes: Vec<WriteView>,
    /// Azure writes it takes.
    pub calls: usize,
    /// What has to be read before the plan is known, one line each.
    pub unread: Vec<String>,
    /// What stands in the way of it, one line each.
    pub held_up: Vec<String>,
}

impl PlanView {
    /// Whether nothing is to be written, and nothing that is not as asked for is left over.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.is_empty() && self.unread.is_empty() && self.held_up.is_empty()
    }

    /// Whether nothing is to be written, as far as known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.writes.is_empty()
    }
}
