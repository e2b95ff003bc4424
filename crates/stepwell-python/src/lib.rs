//! The native half of the Python package: a store's operations, without Python's lock.
//!
//! Every method copies its arguments, lets go of the interpreter, and works on the store.
//! What goes in and out is plain: text, bytes, numbers, and JSON for what has many fields.
//! The package in `python/` gives it the shape that people use; its `_core.pyi` says what
//! each method takes.

#![expect(
    clippy::needless_pass_by_value,
    clippy::too_many_arguments,
    reason = "a method's arguments are Python's: what was converted is owned, keywords are many"
)]

mod agents;
mod chains;
mod chunks;
mod convert;
mod elements;
mod errors;
mod given;
mod lists;
mod open;
mod packing;
mod reading;
mod well;
mod writing;

use pyo3::prelude::*;

/// The package's native module.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<well::Well>()?;
    module.add_class::<well::Hold>()?;
    module.add_class::<elements::KnownElements>()?;
    module.add_function(wrap_pyfunction!(chunks::cut_points, module)?)?;
    module.add_function(wrap_pyfunction!(convert::digest, module)?)?;
    module.add_function(wrap_pyfunction!(convert::derived_id, module)?)?;
    module.add_function(wrap_pyfunction!(reading::message_digest, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    Ok(())
}
