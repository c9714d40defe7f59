//! Enums whose variants are known by a name and told in a few words.

/// An enum, all its variants in their order, and their names and words.
macro_rules! named {
    (
        $(#[$doc:meta])* pub enum $kind:ident;
        $(#[$all_doc:meta])* pub const $all:ident;
        $($(#[$attribute:meta])* $variant:ident, $name:literal, $what:literal;)*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $kind {
            $($(#[$attribute])* #[doc = $what] $variant,)*
        }

        $(#[$all_doc])*
        pub const $all: &[$kind] = &[$($kind::$variant,)*];

        impl $kind {
            /// Its name on the command line and in counts.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The one of a name.
            #[must_use]
            pub fn parse(name: &str) -> Option<Self> {
                $all.iter().copied().find(|one| one.name() == name)
            }

            /// What it is, in a few words.
            #[must_use]
            pub fn what(self) -> &'static str {
                match self {
                    $(Self::$variant => $what,)*
                }
            }
        }
    };
}
