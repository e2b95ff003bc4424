//! Errors as Python's exceptions: one match on what the caller should do.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use stepwell::{Error, ErrorKind};

/// The exception class of `stepwell.errors` that says what the caller should do.
const fn class_of(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Invalid => "InvalidError",
        ErrorKind::Absent => "AbsentError",
        ErrorKind::Conflict => "ConflictError",
        ErrorKind::Busy => "BusyError",
        ErrorKind::Fenced => "FencedError",
        ErrorKind::Damaged => "DamagedError",
        ErrorKind::Incompatible => "IncompatibleError",
        ErrorKind::Denied => "DeniedError",
        ErrorKind::Full => "FullError",
        ErrorKind::Io => "StorageError",
    }
}

/// What a store's error is in Python.
pub(crate) fn raised(error: &Error) -> PyErr {
    of_kind(error.kind(), error.to_string())
}

/// What an error of the formats is in Python.
pub(crate) fn raised_format(error: &stepwell_formats::Error) -> PyErr {
    of_kind(error.kind(), error.to_string())
}

/// What was asked is wrong.
pub(crate) fn invalid(message: impl Into<String>) -> PyErr {
    of_kind(ErrorKind::Invalid, message.into())
}

/// An error of this kind.
pub(crate) fn of_kind(kind: ErrorKind, message: String) -> PyErr {
    static ERRORS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    Python::attach(|py| {
        let module = ERRORS.get_or_try_init(py, || py.import("stepwell.errors").map(Bound::unbind));
        let made = module.and_then(|module| {
            let class = module.bind(py).getattr(class_of(kind))?;
            class.call1((message.as_str(),))
        });
        match made {
            Ok(exception) => PyErr::from_value(exception),
            // Only a package that was taken apart lacks the module.
            Err(_) => PyException::new_err(message),
        }
    })
}
