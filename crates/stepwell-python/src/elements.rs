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

/// What one element was made of.
struct Element {
    /// The element, the types and sizes of what it holds, and its immutable parts, in order.
    parts: Vec<Part>,
}

enum Part {
    Object(Py<PyAny>),
    Size(usize),
}

/// The elements of a list as they were last seen.
#[pyclass(frozen, module = "stepwell._core")]
pub(crate) struct KnownElements {
    elements: Mutex<Vec<Option<Element>>>,
    models: Mutex<HashMap<usize, (Py<PyType>, bool)>>,
}

#[pymethods]
impl KnownElements {
    #[new]
    fn new() -> Self {
        Self { elements: Mutex::default(), models: Mutex::default() }
    }

    fn __len__(&self) -> usize {
        self.elements.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// How many elements at the front of a list are as they were.
    fn unchanged(&self, list: &Bound<'_, PyList>) -> usize {
        let elements = self.elements.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |(known, object): (&Option<Element>, Bound<'_, PyAny>)| {
            known.as_ref().is_some_and(|known| self.is_same(known, &object))
        };
        elements.iter().zip(list.iter()).take_while(|(a, b)| same((a, b.clone()))).count()
    }

    /// Remembers a list whose first elements are known to be as they were.
    fn remember(&self, list: &Bound<'_, PyList>, unchanged: usize) {
        let mut elements = self.elements.lock().unwrap_or_else(PoisonError::into_inner);
        elements.truncate(unchanged);
        for object in list.iter().skip(elements.len()) {
            let mut walk = Collect::default();
            let whole = self.walk(&object, &mut walk, 0);
            elements.push(whole.then_some(Element { parts: walk.parts }));
        }
    }
}

/// What is done with each part of an element; no, and the walk ends.
trait Visit {
    fn object(&mut self, object: &Bound<'_, PyAny>) -> bool;
    fn size(&mut self, size: usize) -> bool;
}

#[derive(Default)]
struct Collect {
    parts: Vec<Part>,
}

impl Visit for Collect {
    fn object(&mut self, object: &Bound<'_, PyAny>) -> bool {
        self.parts.push(Part::Object(object.clone().unbind()));
        true
    }

    fn size(&mut self, size: usize) -> bool {
        self.parts.push(Part::Size(size));
        true
    }
}

struct Compare<'a> {
    parts: std::slice::Iter<'a, Part>,
}

impl Visit for Compare<'_> {
    fn object(&mut self, object: &Bound<'_, PyAny>) -> bool {
        matches!(self.parts.next(), Some(Part::Object(known)) if known.as_ptr() == object.as_ptr())
    }

    fn size(&mut self, size: usize) -> bool {
        matches!(self.parts.next(), Some(Part::Size(known)) if *known == size)
    }
}

impl KnownElements {
    fn is_same(&self, known: &Element, object: &Bound<'_, PyAny>) -> bool {
        let mut compare = Compare { parts: known.parts.iter() };
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
        if let Ok(list) = object.cast_exact::<PyList>() {
            return visit.size(list.len()) && list.iter().all(|it| next(&it, visit));
        }
        if let Ok(tuple) = object.cast_exact::<PyTuple>() {
            return visit.size(tuple.len()) && tuple.iter().all(|it| next(&it, visit));
        }
        if let Ok(dict) = object.cast_exact::<PyDict>() {
            return self.walk_dict(dict, visit, depth);
        }
        self.is_model(&object.get_type()) && self.walk_model(object, visit, depth)
    }

    fn walk_dict(&self, dict: &Bound<'_, PyDict>, visit: &mut impl Visit, depth: usize) -> bool {
        visit.size(dict.len())
            && dict.iter().all(|(key, value)| {
                self.walk(&key, visit, depth + 1) && self.walk(&value, visit, depth + 1)
            })
    }

    /// A Pydantic object is what its fields and its extra fields are.
    fn walk_model(&self, model: &Bound<'_, PyAny>, visit: &mut impl Visit, depth: usize) -> bool {
        let py = model.py();
        let fields = model.getattr(pyo3::intern!(py, "__dict__"));
        let extra = model.getattr(pyo3::intern!(py, "__pydantic_extra__"));
        let (Ok(fields), Ok(extra)) = (fields, extra) else { return false };
        let Ok(fields) = fields.cast_exact::<PyDict>() else { return false };
        self.walk_dict(fields, visit, depth)
            && (extra.is_none() || self.walk(&extra, visit, depth + 1))
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
    object.is_none()
        || object.is_exact_instance_of::<PyString>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyBool>()
        || object.is_exact_instance_of::<PyBytes>()
}
