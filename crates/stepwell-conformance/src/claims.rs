//! Turns a module's cases into an implementation's tests.

use crate::{Fixture, Harness};

/// Runs one case against a fresh store.
pub fn run<F: Fixture + 'static>(make: impl FnOnce() -> F, case: impl FnOnce(&mut Harness<F>)) {
    case(&mut Harness::new(make()));
}

/// Lists a module's cases. Generates the macro that turns them into tests. Nothing else uses the
/// case functions, so a case that is not listed is dead code, and the lints reject it: every case
/// runs.
macro_rules! claims {
    ($dollar:tt $module:ident = $expand:ident for $bound:ident: $($name:ident,)*) => {
        /// The cases, for the macro that expands to tests.
        #[doc(hidden)]
        pub mod claims {
            $(
                /// The claim is its name.
                pub fn $name<F: $crate::$bound>(harness: &mut $crate::Harness<F>) {
                    super::$name(harness);
                }
            )*
        }

        #[doc(hidden)]
        #[macro_export]
        macro_rules! $expand {
            ($dollar make:ident) => {
                mod $module {
                    $(
                        #[test]
                        fn $name() {
                            $crate::run(super::$dollar make, $crate::$module::claims::$name);
                        }
                    )*
                }
            };
        }
    };
}

pub(crate) use claims;
