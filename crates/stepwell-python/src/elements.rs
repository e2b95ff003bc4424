//! Which elements of a growing list are as they were.
//!
//! A graph's state is put again at every step, and most of it is a list of messages of which
//! only the last ones are new. Serializing the others to find that out costs more than all
//! the rest. So the elements of the last list are remembered with everything immutable in
//! them: an element is as it was if it is the same object, built of the same immutable
//! objects in the same order. References are held, so that no address is used again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};

/// Objects nested deeper than this are taken for changed.
const MAX_DEPTH: usize = 32;

/// The elements of a list as they were last seen.
#[pyclass(frozen, module = "stepwell._core")]
pub(crate) struct KnownElements {
    elements: Mutex<Elements>,
    models: Mutex<HashMap<usize, (Py<PyType>, bool)>>,
}

/// What all elements were made of, one behind the other: thousands are compared at each step, and
/// what lies in a row is read faster than what is spread.
#[derive(Default)]
struct Elements {
    /// The addresses of an element, of its class and of its parts, and the sizes of what holds
    /// others, in the order of a walk. What comes before one says which of them it is.
    parts: Vec<usize>,
    /// The objects at those addresses.
    held: Vec<Py<PyAny>>,
    ends: Vec<End>,
}

/// Where an element ends.
#[derive(Clone, Copy, Default)]
struct End {
    parts: usize,
    held: usize,
    /// Was all of it looked into?
    is_whole: bool,
}

impl Elements {
    /// Forgets all but the first elements.
    fn truncate(&mut self, count: usize) {
        self.ends.truncate(count);
        let end = self.ends.last().copied().unwrap_or_default();
        self.parts.truncate(end.parts);
        self.held.truncate(end.held);
    }
}

#[pymethods]
impl KnownElements {
    #[new]
    fn new() -> Self {
        Self { elements: Mutex::default(), models: Mutex::default() }
    }

    fn __len__(&self) -> usize {
        self.elements.lock().unwrap_or_else(PoisonError::into_inner).ends.len()
    }

    /// How many elements at the front of a list are as they were.
    fn unchanged(&self, list: &Bound<'_, PyList>) -> usize {
        let elements = self.elements.lock().unwrap_or_else(PoisonError::into_inner);
        let mut start = 0;
        let is_same = |(end, object): &(&End, Bound<'_, PyAny>)| {
            let parts = elements.parts.get(start..end.parts).unwrap_or_default();
            start = end.parts;
            end.is_whole && self.is_same(parts, object)
        };
        elements.ends.iter().zip(list.iter()).take_while(is_same).count()
    }

    /// Remembers a list whose first elements are known to be as they were.
    fn remember(&self, list: &Bound<'_, PyList>, unchanged: usize) {
        let mut elements = self.elements.lock().unwrap_or_else(PoisonError::into_inner);
        elements.truncate(unchanged);
        for object in list.get_slice(elements.ends.len(), list.len()).iter() {
            let is_whole = self.walk(&object, &mut *elements, 0);
            let end = End { parts: elements.parts.len(), held: elements.held.len(), is_whole };
            elements.ends.push(end);
        }
    }
}

/// What is done with each part of an element; no, and the walk ends.
trait Visit {
    fn object(&mut self, object: &Bound<'_, PyAny>) -> bool;
    fn size(&mut self, size: usize) -> bool;
    /// The class of an object that is no plain one; `is_model` says if it is one of Pydantic's.
    fn class(
        &mut self,
        object: &Bound<'_, PyAny>,
        is_model: impl Fn(&Bound<'_, PyType>) -> bool,
    ) -> bool;
}

impl Visit for Elements {
    fn object(&mut self, object: &Bound<'_, PyAny>) -> bool {
        self.parts.push(object.as_ptr() as usize);
        self.held.push(object.clone().unbind());
        true
    }

    fn size(&mut self, size: usize) -> bool {
        self.parts.push(size);
        true
    }

    fn class(
        &mut self,
        object: &Bound<'_, PyAny>,
        is_model: impl Fn(&Bound<'_, PyType>) -> bool,
    ) -> bool {
        let class = object.get_type();
        is_model(&class) && self.object(&class)
    }
}

struct Compare<'a> {
    parts: std::slice::Iter<'a, usize>,
}

impl Visit for Compare<'_> {
    fn object(&mut self, object: &Bound<'_, PyAny>) -> bool {
        self.size(object.as_ptr() as usize)
    }

    fn size(&mut self, size: usize) -> bool {
        self.parts.next() == Some(&size)
    }

    fn class(
        &mut self,
        object: &Bound<'_, PyAny>,
        _is_model: impl Fn(&Bound<'_, PyType>) -> bool,
    ) -> bool {
        // What could be looked into then can be now.
        self.size(object.get_type_ptr() as usize)
    }
}

impl KnownElements {
    fn is_same(&self, known: &[usize], object: &Bound<'_, PyAny>) -> bool {
        let mut compare = Compare { parts: known.iter() };
        self.walk(object, &mut compare, 0) && compare.parts.next().is_none()
    }

    /// Shows every part of an object; false, if one cannot be looked into.
    fn walk(&self, object: &Bound<'_, PyAny>, visit: &mut impl Visit, depth: usize) -> bool {
        if is_immutable(object) {
            return visit.object(object);
        }
        if depth == MAX_DEPTH || !visit.object(object) {
            return false;
        }
        let next = |part: &Bound<'_, PyAny>, visit: &mut _| self.walk(part, visit, depth + 1);
        if let Ok(dict) = object.cast_exact::<PyDict>() {
            return self.walk_dict(dict, visit, depth);
        }
        if let Ok(list) = object.cast_exact::<PyList>() {
            return visit.size(list.len()) && list.iter().all(|it| next(&it, visit));
        }
        if let Ok(tuple) = object.cast_exact::<PyTuple>() {
            return visit.size(tuple.len()) && tuple.iter().all(|it| next(&it, visit));
        }
        visit.class(object, |class| self.is_model(class)) && self.walk_model(object, visit, depth)
    }

    fn walk_dict(&self, dict: &Bound<'_, PyDict>, visit: &mut impl Visit, depth: usize) -> bool {
        let size = dict.len();
        visit.size(size)
            && (size == 0
                || dict.iter().all(|(key, value)| {
                    self.walk(&key, visit, depth + 1) && self.walk(&value, visit, depth + 1)
                }))
    }

    /// A Pydantic object is what its fields and its extra fields are.
    fn walk_model(&self, model: &Bound<'_, PyAny>, visit: &mut impl Visit, depth: usize) -> bool {
        let py = model.py();
        let fields = model.getattr(pyo3::intern!(py, "__dict__"));
        let extra = model.getattr(pyo3::intern!(py, "__pydantic_extra__"));
        let (Ok(fields), Ok(extra)) = (fields, extra) else { return false };
        let Ok(fields) = fields.cast_exact::<PyDict>() else { return false };
        self.walk_dict(fields, visit, depth) && self.walk(&extra, visit, depth + 1)
    }

    fn is_model(&self, class: &Bound<'_, PyType>) -> bool {
        let mut models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = models.entry(class.as_ptr() as usize).or_insert_with(|| {
            let is = class.hasattr("__pydantic_fields__").unwrap_or(false);
            (class.clone().unbind(), is)
        });
        entry.1
    }
}

/// Is it an object that cannot change?
fn is_immutable(object: &Bound<'_, PyAny>) -> bool {
    object.is_exact_instance_of::<PyString>()
        || object.is_none()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyBool>()
        || object.is_exact_instance_of::<PyBytes>()
}
