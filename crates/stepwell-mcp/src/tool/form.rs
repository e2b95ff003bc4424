//! A tool's description, permission and function, with the steps common to all tools.

use std::fmt;
use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Result;
use crate::input;
use crate::options::Access;
use crate::outgoing::{Outgoing, Quoted};
use crate::stores::Stores;

use super::one_type;

/// The permission that a tool needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// None: it only reads.
    Read,
    /// This one.
    Needs(Access),
}

type Run = dyn Fn(&Stores, JsonObject) -> Result<Outgoing> + Send + Sync;

/// A tool.
#[derive(Clone)]
pub(crate) struct ToolForm {
    /// The description for clients.
    pub(crate) listed: Tool,
    /// The permission that it needs.
    pub(crate) group: Group,
    /// Its function.
    pub(crate) run: Arc<Run>,
}

impl fmt::Debug for ToolForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolForm").field("name", &self.listed.name).finish_non_exhaustive()
    }
}

/// A tool's name and purpose.
#[derive(Clone, Copy, Debug)]
pub(super) struct About {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) description: &'static str,
}

/// The effect of repeating a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// None.
    Same,
    /// Something else is added.
    Adds,
}

/// A read-only tool. Its answer is marked as quoted.
pub(super) fn reads<I, O>(about: About, run: fn(&Stores, I) -> Result<O>) -> ToolForm
where
    I: DeserializeOwned + JsonSchema + 'static,
    O: Serialize + JsonSchema + 'static,
{
    let hints = ToolAnnotations::new().read_only(true).idempotent(true).open_world(false);
    let run = move |stores: &Stores, arguments| {
        let answer = Quoted::new(run(stores, input::read(arguments)?)?);
        Outgoing::new(&stores.redactor, &answer)
    };
    let listed = listed::<I, Quoted<O>>(about, hints);
    ToolForm { listed, group: Group::Read, run: Arc::new(run) }
}

/// A tool that writes, if the user allows it. No tool erases anything.
pub(super) fn writes<I, O>(
    access: Access,
    about: About,
    again: Again,
    run: fn(&Stores, I) -> Result<O>,
) -> ToolForm
where
    I: DeserializeOwned + JsonSchema + 'static,
    O: Serialize + JsonSchema + 'static,
{
    let hints = ToolAnnotations::new().read_only(false).destructive(false).open_world(false);
    let hints = hints.idempotent(again == Again::Same);
    let run = move |stores: &Stores, arguments| {
        let answer = run(stores, input::read(arguments)?)?;
        Outgoing::new(&stores.redactor, &answer)
    };
    let listed = listed::<I, O>(about, hints);
    ToolForm { listed, group: Group::Needs(access), run: Arc::new(run) }
}

fn listed<I: JsonSchema, O: JsonSchema>(about: About, hints: ToolAnnotations) -> Tool {
    let About { name, title, description } = about;
    let mut hints = hints;
    hints.title = Some(title.to_owned());
    let taken = stepwell::schema::settings().for_deserialize();
    let given = stepwell::schema::settings().for_serialize();
    let input = taken.with(|it| it.inline_subschemas = true).into_generator();
    let mut input = input.into_root_schema_for::<I>();
    one_type::of_input(&mut input);
    let mut output = given.into_generator().into_root_schema_for::<O>();
    one_type::of_output(&mut output);
    let object = |schema: schemars::Schema| match schema.to_value() {
        serde_json::Value::Object(mut fields) => {
            // The schema of a type without fields has no type.
            fields.entry("type").or_insert_with(|| "object".into());
            fields
        }
        _ => JsonObject::default(),
    };
    Tool::new(name, description, object(input))
        .with_title(title)
        .with_raw_output_schema(Arc::new(object(output)))
        .with_annotations(hints)
}
