//! Which elements of a growing list are as they were.
//!
//! A graph's state is put again at every step, and most of it is a list of messages of which
//! only the last ones are new. Serializing the others to find that out costs more than all
//! the rest. So the elements of the last list are remembered with everything in them that can
//! change, and with what it held: an element is as it was if it is the same object, and each
//! list, dict and Pydantic object within it holds the same objects as before. References are
//! held, so that no address is used again.
//!
//! Thousands of elements are looked at for each step, and most of that time goes into waiting
//! for memory. So what is alike is looked at together, in short loops that do not depend on each
//! other, and what cannot change is not looked at: a text that is still in its place is the same.
//!
//! Elements that were read from the store can be given out again, if nobody else holds any of what
//! they are made of, and nothing of it was changed: to serialize and load them costs far more.

use std::num::NonZeroU32;
use std::ops::Range;

use parking_lot::{Mutex, MutexGuard};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};

/// So many elements are looked at together: few enough that what is fetched for one look is near
/// for the next.
const BLOCK: usize = 128;

/// An element that holds more than this many objects of a kind is not taken for an example.
const MOST_LIKE: usize = 64;

/// Objects nested deeper than this are taken for changed.
const MAX_DEPTH: usize = 32;

/// The elements of a list as they were last seen.
#[pyclass(frozen, module = "stepwell._core")]
pub(crate) struct KnownElements {
    known: Mutex<Known>,
}

/// All that the elements are made of, by what it is, each in the order of the elements.
#[derive(Default)]
struct Known {
    elements: Vec<Py<PyAny>>,
    models: Vec<Model>,
    /// Of each Pydantic object that was read, what it was given.
    given: Vec<Option<Given>>,
    dicts: Vec<Holder<PyDict>>,
    lists: Vec<Holder<PyList>>,
    /// What the dicts and lists hold, one behind the other; of a dict each key before its value.
    held: Vec<Py<PyAny>>,
    /// The texts among what dicts hold.
    texts: Vec<Py<PyAny>>,
    ends: Vec<End>,
    /// The first element that could not be looked into.
    opaque: Option<usize>,
    /// The first element with a tuple in it, whose holders are not counted.
    tuple: Option<usize>,
    /// The classes of elements, which are few: are they Pydantic's?
    classes: Vec<(Py<PyType>, bool)>,
}

/// A Pydantic object, and what it is made of.
struct Model {
    element: Place,
    references: References,
    object: Py<PyAny>,
    class: Py<PyType>,
    fields: Py<PyAny>,
    extra: Py<PyAny>,
}

/// The names of the fields that a Pydantic object was given when it was read.
struct Given {
    names: Py<PyAny>,
    count: usize,
    references: References,
}

impl Given {
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let names = object.getattr(pyo3::intern!(object.py(), "__pydantic_fields_set__"))?;
        let count = names.len()?;
        Ok(Self { names: names.unbind(), count, references: References::default() })
    }

    /// Are they the same, and held by nobody else?
    fn is_all_of(&self, object: &Bound<'_, PyAny>) -> bool {
        self.references.are_all(object.py(), &self.names)
            && Self::of(object).is_ok_and(|now| {
                now.names.as_ptr() == self.names.as_ptr() && now.count == self.count
            })
    }
}

/// A dict or a list, and where that is what it held.
struct Holder<T> {
    element: Place,
    start: Place,
    end: Place,
    references: References,
    holder: Py<T>,
}

/// A place in one of the lists below. Half as long as most: what is looked at for each step should be
/// short.
#[derive(Clone, Copy, Default)]
struct Place(u32);

impl Place {
    fn new(at: usize) -> Self {
        Self(u32::try_from(at).expect("so many objects do not fit in memory"))
    }

    const fn get(self) -> usize {
        self.0 as usize
    }
}

/// How many references an object had that was read just now, without the one of the list that it was
/// read into. As long as it has no more, nobody but this and the objects around it knows of it.
#[derive(Clone, Copy, Default)]
struct References(Option<NonZeroU32>);

impl References {
    fn of<T>(py: Python<'_>, object: &Py<T>, element: &Py<PyAny>) -> Self {
        let is_element = object.as_ptr() == element.as_ptr();
        let count = Self::count(py, object) - isize::from(is_element);
        Self(u32::try_from(count).ok().and_then(NonZeroU32::new))
    }

    fn are_all<T>(self, py: Python<'_>, object: &Py<T>) -> bool {
        self.0.is_some_and(|count| isize::try_from(count.get()) == Ok(Self::count(py, object)))
    }

    #[expect(deprecated, reason = "what pyo3 names in its place is unsafe code")]
    fn count<T>(py: Python<'_>, object: &Py<T>) -> isize {
        object.get_refcnt(py)
    }
}

impl<T> Holder<T> {
    fn new(holder: &Bound<'_, T>, element: usize, held: Range<usize>) -> Self {
        Self {
            element: Place::new(element),
            start: Place::new(held.start),
            end: Place::new(held.end),
            references: References::default(),
            holder: holder.clone().unbind(),
        }
    }

    /// Where the objects are that it held.
    const fn range(&self) -> Range<usize> {
        self.start.get()..self.end.get()
    }
}

/// Where an element ends.
#[derive(Clone, Copy, Default)]
struct End {
    models: Place,
    dicts: Place,
    lists: Place,
    held: Place,
    texts: Place,
}

impl End {
    const fn models(self, to: Self) -> Range<usize> {
        self.models.get()..to.models.get()
    }

    const fn dicts(self, to: Self) -> Range<usize> {
        self.dicts.get()..to.dicts.get()
    }

    const fn lists(self, to: Self) -> Range<usize> {
        self.lists.get()..to.lists.get()
    }

    const fn texts(self, to: Self) -> Range<usize> {
        self.texts.get()..to.texts.get()
    }
}

#[pymethods]
impl KnownElements {
    #[new]
    fn new() -> Self {
        Self { known: Mutex::default() }
    }

    fn __len__(&self) -> usize {
        self.lock().elements.len()
    }

    /// How many elements at the front of a list are as they were.
    fn unchanged(&self, list: &Bound<'_, PyList>) -> usize {
        self.lock().unchanged(list)
    }

    /// Remembers a list whose first elements are known to be as they were.
    fn remember(&self, list: &Bound<'_, PyList>, unchanged: usize) {
        self.lock().remember(list, unchanged);
    }

    /// Remembers a list whose elements behind the first ones were read just now: nobody has them but
    /// the list.
    fn remember_read(&self, list: &Bound<'_, PyList>, unchanged: usize) {
        let mut known = self.lock();
        known.remember(list, unchanged);
        known.count_references(list.py(), unchanged);
    }

    /// Takes the elements at the front out that were read, that are as they were, and that nobody else
    /// holds; the others are forgotten. Returns what is known of them, and a list of them.
    fn take_unheld<'py>(&self, py: Python<'py>) -> PyResult<(Self, Bound<'py, PyList>)> {
        let mut known = std::mem::take(&mut *self.lock());
        let count = known.unheld(py);
        known.truncate(count);
        let list = PyList::new(py, &known.elements)?;
        Ok((Self { known: Mutex::new(known) }, list))
    }
}

impl KnownElements {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock()
    }
}

impl Known {
    fn unchanged(&self, list: &Bound<'_, PyList>) -> usize {
        let is_same = |at: usize| list.get_item(at).is_ok_and(|it| self.elements[at].is(&it));
        self.front(list.len(), |block| {
            let same = block.clone().find(|at| !is_same(*at)).unwrap_or(block.end);
            self.unchanged_in(list.py(), block.start..same)
        })
    }

    /// How many elements at the front were read, are as they were, and are held by nobody else.
    fn unheld(&self, py: Python<'_>) -> usize {
        self.front(self.tuple.unwrap_or(self.elements.len()), |block| {
            let same = self.unheld_in(py, block.clone());
            self.unchanged_in(py, block.start..same)
        })
    }

    /// How many of the first `most` elements are all right, by the first one of a block that is not.
    fn front(&self, most: usize, first_other: impl Fn(Range<usize>) -> usize) -> usize {
        let most = self.opaque.unwrap_or(self.elements.len()).min(most);
        let mut same = 0;
        while same < most {
            let block = same..most.min(same + BLOCK);
            let (end, found) = (block.end, first_other(block));
            same = found;
            if found < end {
                break;
            }
        }
        same
    }

    /// The first element of a block that was not read, or that somebody else holds.
    fn unheld_in(&self, py: Python<'_>, block: Range<usize>) -> usize {
        let (start, end) = (self.end_before(block.start), self.end_before(block.end));
        let models = start.models(end);
        let mut models = self.models[models.clone()].iter().zip(&self.given[models]);
        let is_unheld = |model: &Model, given: Option<&Given>| {
            let object = model.object.bind(py);
            model.references.are_all(py, &model.object)
                && given.is_some_and(|given| given.is_all_of(object))
                && has_no_secrets(object)
        };
        let held = models.find(|(model, given)| !is_unheld(model, given.as_ref()));
        let same = held.map_or(block.end, |(model, _)| model.element());
        let same = first_other(&self.lists[start.lists(end)], same, |list| {
            list.references.are_all(py, &list.holder)
        });
        first_other(&self.dicts[start.dicts(end)], same, |dict| {
            dict.references.are_all(py, &dict.holder)
        })
    }

    /// The first element of a block in which something is not as it was, or the block's end.
    fn unchanged_in(&self, py: Python<'_>, block: Range<usize>) -> usize {
        let same = block.end;
        let (start, end) = (self.end_before(block.start), self.end_before(same));
        for text in &self.texts[start.texts(end)] {
            // It is about to be looked at, one by one. Here many are fetched at a time.
            drop(text.clone_ref(py));
        }
        let dicts = &self.dicts[start.dicts(end)];
        let is_as_long =
            |dict: &Holder<PyDict>| dict.holder.bind(py).len() * 2 == dict.range().len();
        let same = first_other(dicts, same, is_as_long);
        let same = first_other(&self.models[start.models(end)], same, |model| {
            let object = model.object.bind(py);
            let is = |name, of: &Py<PyAny>| object.getattr(name).is_ok_and(|it| of.is(&it));
            object.get_type_ptr() == model.class.as_ptr().cast()
                && is(pyo3::intern!(py, "__dict__"), &model.fields)
                && is(pyo3::intern!(py, "__pydantic_extra__"), &model.extra)
        });
        let same = first_other(&self.lists[start.lists(end)], same, |list| {
            let (held, list) = (&self.held[list.range()], list.holder.bind(py));
            list.len() == held.len() && list.iter().zip(held).all(|(item, of)| of.is(&item))
        });
        first_other(dicts, same, |dict| {
            let held = &self.held[dict.range()];
            let pairs = || dict.holder.bind(py).iter().zip(held.chunks_exact(2));
            held.is_empty() || pairs().all(|((key, value), of)| of[0].is(&key) && of[1].is(&value))
        })
    }

    /// Where the element before this one ends.
    fn end_before(&self, element: usize) -> End {
        element.checked_sub(1).map_or_else(End::default, |before| self.ends[before])
    }

    fn remember(&mut self, list: &Bound<'_, PyList>, unchanged: usize) {
        self.truncate(unchanged);
        for at in self.elements.len()..list.len() {
            // Whoever makes the list shorter meanwhile has not put it yet.
            let Ok(object) = list.get_item(at) else { break };
            self.add(&object);
            if at == unchanged {
                self.make_room(list.len().saturating_sub(at + 1));
            }
        }
    }

    /// Makes room for more elements like the last one.
    fn make_room(&mut self, more: usize) {
        let count = self.elements.len();
        let (start, end) = (self.end_before(count.saturating_sub(1)), self.end_before(count));
        let like = |range: Range<usize>| range.len().min(MOST_LIKE) * more;
        self.elements.reserve(more);
        self.ends.reserve(more);
        self.models.reserve(like(start.models(end)));
        self.given.reserve(like(start.models(end)));
        self.dicts.reserve(like(start.dicts(end)));
        self.lists.reserve(like(start.lists(end)));
        self.held.reserve(like(start.held.get()..end.held.get()));
        self.texts.reserve(like(start.texts(end)));
    }

    /// Counts the references of all that elements are made of which were read just now.
    fn count_references(&mut self, py: Python<'_>, first: usize) {
        let (start, elements) = (self.end_before(first), &self.elements);
        let models = self.models[start.models.get()..].iter_mut();
        for (model, given) in models.zip(&mut self.given[start.models.get()..]) {
            let element = &elements[model.element.get()];
            *given = Given::of(model.object.bind(py)).ok().map(|given| {
                let references = References::of(py, &given.names, element);
                Given { references, ..given }
            });
            model.references = References::of(py, &model.object, element);
        }
        for list in &mut self.lists[start.lists.get()..] {
            list.references = References::of(py, &list.holder, &elements[list.element.get()]);
        }
        for dict in &mut self.dicts[start.dicts.get()..] {
            dict.references = References::of(py, &dict.holder, &elements[dict.element.get()]);
        }
    }

    /// Forgets all but the first elements.
    fn truncate(&mut self, count: usize) {
        self.ends.truncate(count);
        let end = self.ends.last().copied().unwrap_or_default();
        self.elements.truncate(count);
        self.models.truncate(end.models.get());
        self.given.truncate(end.models.get());
        self.dicts.truncate(end.dicts.get());
        self.lists.truncate(end.lists.get());
        self.held.truncate(end.held.get());
        self.texts.truncate(end.texts.get());
        self.opaque = self.opaque.filter(|at| *at < count);
        self.tuple = self.tuple.filter(|at| *at < count);
    }

    fn add(&mut self, object: &Bound<'_, PyAny>) {
        let at = self.elements.len();
        self.elements.push(object.clone().unbind());
        if !self.look_into(object, at, 0) && self.opaque.is_none() {
            self.opaque = Some(at);
        }
        self.ends.push(End {
            models: Place::new(self.models.len()),
            dicts: Place::new(self.dicts.len()),
            lists: Place::new(self.lists.len()),
            held: Place::new(self.held.len()),
            texts: Place::new(self.texts.len()),
        });
    }

    /// Remembers what an object of an element is made of; false, if it cannot be looked into.
    fn look_into(&mut self, object: &Bound<'_, PyAny>, element: usize, depth: usize) -> bool {
        if is_immutable(object) {
            return true;
        }
        if depth == MAX_DEPTH {
            return false;
        }
        if let Ok(dict) = object.cast_exact::<PyDict>() {
            return self.look_into_dict(dict, element, depth);
        }
        if let Ok(list) = object.cast_exact::<PyList>() {
            let start = self.held.len();
            self.held.extend(list.iter().map(Bound::unbind));
            self.lists.push(Holder::new(list, element, start..self.held.len()));
            return list.iter().all(|it| self.look_into(&it, element, depth + 1));
        }
        if let Ok(tuple) = object.cast_exact::<PyTuple>() {
            self.tuple = self.tuple.or(Some(element));
            return tuple.iter().all(|it| self.look_into(&it, element, depth + 1));
        }
        self.look_into_model(object, element, depth)
    }

    fn look_into_dict(&mut self, dict: &Bound<'_, PyDict>, element: usize, depth: usize) -> bool {
        let start = self.held.len();
        if !dict.is_empty() {
            self.held.extend(dict.iter().flat_map(|(key, value)| [key.unbind(), value.unbind()]));
        }
        let end = self.held.len();
        self.dicts.push(Holder::new(dict, element, start..end));
        let py = dict.py();
        (start..end).all(|at| {
            let part = self.held[at].bind(py);
            // Keys are few and the same everywhere: they need not be fetched.
            if (at - start) % 2 == 1 && part.is_exact_instance_of::<PyString>() {
                let text = self.held[at].clone_ref(py);
                self.texts.push(text);
                return true;
            }
            if is_immutable(part) {
                return true;
            }
            let part = part.clone();
            self.look_into(&part, element, depth + 1)
        })
    }

    /// A Pydantic object is what its fields and its extra fields are.
    fn look_into_model(&mut self, object: &Bound<'_, PyAny>, element: usize, depth: usize) -> bool {
        let (py, class) = (object.py(), object.get_type());
        if !self.is_model(&class) {
            return false;
        }
        let fields = object.getattr(pyo3::intern!(py, "__dict__"));
        let extra = object.getattr(pyo3::intern!(py, "__pydantic_extra__"));
        let (Ok(fields), Ok(extra)) = (fields, extra) else { return false };
        self.models.push(Model {
            element: Place::new(element),
            references: References::default(),
            object: object.clone().unbind(),
            class: class.unbind(),
            fields: fields.clone().unbind(),
            extra: extra.clone().unbind(),
        });
        self.given.push(None);
        let Ok(fields) = fields.cast_exact::<PyDict>() else { return false };
        self.look_into_dict(fields, element, depth) && self.look_into(&extra, element, depth + 1)
    }

    fn is_model(&mut self, class: &Bound<'_, PyType>) -> bool {
        if let Some((_, is_model)) = self.classes.iter().find(|(known, _)| known.is(class)) {
            return *is_model;
        }
        let is_model = class.hasattr("__pydantic_fields__").unwrap_or(false);
        self.classes.push((class.clone().unbind(), is_model));
        is_model
    }
}

/// What belongs to an element.
trait OfElement {
    fn element(&self) -> usize;
}

impl OfElement for Model {
    fn element(&self) -> usize {
        self.element.get()
    }
}

impl<T> OfElement for Holder<T> {
    fn element(&self) -> usize {
        self.element.get()
    }
}

/// The first of the first `count` elements of which something is not as it was.
fn first_other<T: OfElement>(parts: &[T], count: usize, is_same: impl Fn(&T) -> bool) -> usize {
    let mut within = parts.iter().take_while(|part| part.element() < count);
    within.find(|part| !is_same(part)).map_or(count, OfElement::element)
}

/// Has a Pydantic object no private values? Those are not looked into.
fn has_no_secrets(object: &Bound<'_, PyAny>) -> bool {
    let private = object.getattr(pyo3::intern!(object.py(), "__pydantic_private__"));
    private.is_ok_and(|private| private.is_none())
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
