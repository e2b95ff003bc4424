//! A shell command that the user ran in the chat: its form in a message, and how that is parsed.

/// A shell command that the user ran, and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnCommand {
    /// The command as it was typed.
    pub command: String,
    /// Its output.
    pub output: String,
    /// Why it failed, if it did.
    pub failed: Option<String>,
}

const BEGIN: &str = "I ran ";

impl OwnCommand {
    /// The message to the model: Markdown that neither the command nor its output can break out of.
    #[must_use]
    pub fn told(&self) -> String {
        let command = match longest_run(&self.command) {
            0 => format!("`{}`", self.command),
            run => {
                let ticks = "`".repeat(run + 1);
                format!("{ticks} {} {ticks}", self.command)
            }
        };
        let output = self.output.trim_end();
        let fence = "`".repeat(longest_run(output).max(2) + 1);
        let failed = self.failed.as_ref().map(|why| format!("\n({why})")).unwrap_or_default();
        format!("{BEGIN}{command}:\n\n{fence}\n{output}\n{fence}{failed}")
    }

    /// Parses a command at the start of a text. Returns it with the rest of the text.
    #[must_use]
    pub fn read(text: &str) -> Option<(Self, &str)> {
        let text = text.strip_prefix(BEGIN)?;
        let ticks = ticks_before(text);
        // A command that contains backticks is padded with spaces.
        let padded = ticks > 1 && text[ticks..].starts_with(' ');
        let (ticks, pad) = if padded { (ticks, " ") } else { (ticks.min(1), "") };
        let text = text.get(ticks..)?.strip_prefix(pad)?;
        if ticks == 0 {
            return None;
        }
        let (command, text) = text.split_once(&format!("{pad}{}:\n\n```", "`".repeat(ticks)))?;
        let fence = "`".repeat(3 + ticks_before(text));
        let text = text.trim_start_matches('`').strip_prefix('\n')?;
        let (output, rest) = until_line(text, &fence)?;
        let (failed, rest) = failure(rest);
        let (command, output) = (command.to_owned(), output.to_owned());
        Some((Self { command, output, failed }, rest.trim_start_matches('\n')))
    }
}

/// The text before and after the first line that equals `line`.
fn until_line<'a>(text: &'a str, line: &str) -> Option<(&'a str, &'a str)> {
    let mut at = 0;
    for each in text.split('\n') {
        if each == line {
            let before = text[..at].strip_suffix('\n').unwrap_or_default();
            return Some((before, &text[at + each.len()..]));
        }
        at += each.len() + 1;
    }
    None
}

/// The reason of the failure, if the next line holds one.
fn failure(text: &str) -> (Option<String>, &str) {
    let Some(next) = text.strip_prefix("\n(") else { return (None, text) };
    let end = next.find('\n').unwrap_or(next.len());
    match next[..end].strip_suffix(')') {
        Some(why) => (Some(why.to_owned()), &next[end..]),
        None => (None, text),
    }
}

fn ticks_before(text: &str) -> usize {
    text.len() - text.trim_start_matches('`').len()
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(command: &str, output: &str, failed: Option<&str>) -> OwnCommand {
        let failed = failed.map(str::to_owned);
        OwnCommand { command: command.to_owned(), output: output.to_owned(), failed }
    }

    #[test]
    fn a_command_reads_back_from_its_message() {
        for own in [
            ran("git status", "clean", None),
            ran("false", "", Some("exit status 1")),
            ran("echo `date` ``", "a\n\nb", None),
            ran("`date`", "x", None),
            ran("cat README.md", "# Title\n```sh\nmake\n```\nend", Some("killed")),
            ran("for x in 1 2; do\n  echo *$x*\ndone", "*1*\n*2*", None),
        ] {
            let told = own.told();
            assert_eq!(OwnCommand::read(&told), Some((own.clone(), "")), "{told}");
            let more = format!("{told}\n\nwhy?");
            assert_eq!(OwnCommand::read(&more), Some((own, "why?")), "{more}");
        }
    }

    #[test]
    fn commands_with_unescaped_backticks_are_read() {
        for command in ["echo `date`", "`date`"] {
            let told = format!("I ran `{command}`:\n\n```\nout\n```");
            assert_eq!(OwnCommand::read(&told), Some((ran(command, "out", None), "")), "{told}");
        }
    }

    #[test]
    fn other_texts_are_not_commands() {
        for text in ["I ran away", "I ran `make`.", "I ran `make`:\n\n```\nout", "I ran ", "x"] {
            assert_eq!(OwnCommand::read(text), None, "{text}");
        }
    }
}
