//! Deserializers for values with a short and a long form. Errors keep their positions.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer, StrDeserializer};
use serde::de::{self, Deserialize, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};

/// Reads a string of type `S`, or a mapping of type `T`.
pub(super) fn text_or<'de, D, S, T>(
    deserializer: D,
    expected: &'static str,
    of_text: impl FnOnce(S) -> T,
) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    S: Deserialize<'de>,
    T: Deserialize<'de>,
{
    struct TextOr<F, S, T>(&'static str, F, PhantomData<(S, T)>);

    impl<'de, F: FnOnce(S) -> T, S: Deserialize<'de>, T: Deserialize<'de>> Visitor<'de>
        for TextOr<F, S, T>
    {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
            let text: StrDeserializer<'_, E> = text.into_deserializer();
            S::deserialize(text).map(self.1)
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map))
        }
    }

    deserializer.deserialize_any(TextOr(expected, of_text, PhantomData))
}

/// Reads one string of a type, or a list of them.
pub(super) fn one_or_several<'de, D, S>(
    deserializer: D,
    expected: &'static str,
) -> Result<Vec<S>, D::Error>
where
    D: Deserializer<'de>,
    S: Deserialize<'de>,
{
    struct OneOrSeveral<S>(&'static str, PhantomData<S>);

    impl<'de, S: Deserialize<'de>> Visitor<'de> for OneOrSeveral<S> {
        type Value = Vec<S>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<S>, E> {
            let text: StrDeserializer<'_, E> = text.into_deserializer();
            S::deserialize(text).map(|one| vec![one])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Vec<S>, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(seq))
        }
    }

    deserializer.deserialize_any(OneOrSeveral(expected, PhantomData))
}
