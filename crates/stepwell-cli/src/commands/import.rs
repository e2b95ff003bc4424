/// Reads sessions in.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}
pub(crate) fn run(
    _args: &Args,
    _app: &mut crate::app::App,
) -> crate::failure::Result<crate::failure::Exit> {
    Ok(crate::failure::Exit::Done)
}
