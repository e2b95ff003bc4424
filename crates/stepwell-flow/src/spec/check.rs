//! What a spec must hold besides its form.

use super::Spec;
use super::place::Problem;

/// What is wrong with a spec.
pub(super) fn errors(_spec: &Spec) -> Vec<Problem> {
    Vec::new()
}

/// What does not do what one might think.
pub(super) fn warnings(_spec: &Spec) -> Vec<Problem> {
    Vec::new()
}
