//! How a module's cases become an implementation's tests.

use crate::{Fixture, Harness};

/// Runs one case against a fresh store.
pub fn run<F: Fixture + 'static>(make: impl FnOnce() -> F, case: impl FnOnce(&mut Harness<F>)) {
    case(&mut Harness::new(make()));
}

/// Lists a module's cases. It makes the macro that turns them into tests, and is the
/// only user of the case functions: one that is not listed is dead code, which the
/// lints refuse, so no claim is ever written and not run.
macro_rules! claims {
    ($dollar:tt $module:ident = $expand:ident for $bound:ident: $($name:ident,)*) => {
        /// The cases, for the macro that expands to tests.
        #[doc(hidden)]
        pub mod claims {
            $(
                /// A claim, in its name.
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
