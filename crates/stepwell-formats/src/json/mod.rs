//! JSON as other programs write it: fields in their order, numbers and text as they came.

pub(crate) mod fields;
pub(crate) mod json_scan;
pub(crate) mod json_text;
pub(crate) mod lone_surrogates;
