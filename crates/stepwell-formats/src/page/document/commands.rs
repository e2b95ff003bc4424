//! Commands that users ran themselves, as they typed them: Stepwell's own, and Claude Code's.

use stepwell::model::OwnCommand;

use super::{Block, Command};

/// What a user said, with the commands that they ran themselves apart.
pub(super) fn blocks(text: String) -> Vec<Block> {
    if let Some(command) = of_claude(&text) {
        return vec![Block::Command(command)];
    }
    let (mut blocks, mut rest) = (Vec::new(), text.as_str());
    while let Some((own, behind)) = OwnCommand::read(rest) {
        let OwnCommand { command, output, failed } = own;
        blocks.push(Block::Command(Command { typed: Some(typed(&command)), output, failed }));
        rest = behind;
    }
    match blocks.is_empty() {
        true => vec![Block::Text(text)],
        false => {
            blocks.extend((!rest.is_empty()).then(|| Block::Text(rest.to_owned())));
            blocks
        }
    }
}

/// A command as it is typed, in either program.
fn typed(command: &str) -> String {
    format!("!{command}")
}

/// Claude Code tells a command and what it wrote in two messages, with tags.
fn of_claude(text: &str) -> Option<Command> {
    let text = text.trim();
    if let Some((command, "")) = tagged(text, "bash-input") {
        return Some(Command { typed: Some(typed(command)), ..Command::default() });
    }
    let (output, rest) = tagged(text, "bash-stdout")?;
    let (errors, _) = tagged(rest.trim(), "bash-stderr").unwrap_or_default();
    let parts = [output, errors].map(str::trim_end);
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    Some(Command { output: parts.join("\n"), ..Command::default() })
}

/// What a tag at the beginning holds, and what stands behind it.
fn tagged<'a>(text: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    text.strip_prefix(&format!("<{name}>"))?.split_once(&format!("</{name}>"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(typed: Option<&str>, output: &str) -> Block {
        let (typed, output) = (typed.map(str::to_owned), output.to_owned());
        Block::Command(Command { typed, output, failed: None })
    }

    #[test]
    fn commands_stand_apart_from_what_was_said_behind_them() {
        let text = "I ran `ls`:\n\n```\na\n```\n\nI ran `pwd`:\n\n```\n/x\n```\n\nwhy?";
        let said = Block::Text("why?".to_owned());
        assert_eq!(
            blocks(text.to_owned()),
            [command(Some("!ls"), "a"), command(Some("!pwd"), "/x"), said]
        );
        assert_eq!(blocks("I ran.".to_owned()), [Block::Text("I ran.".to_owned())]);
    }

    #[test]
    fn commands_of_claude_code_are_read() {
        let input = "<bash-input>git diff *.rs</bash-input>".to_owned();
        assert_eq!(blocks(input), [command(Some("!git diff *.rs"), "")]);
        let output = "<bash-stdout>one\n</bash-stdout><bash-stderr>two</bash-stderr>".to_owned();
        assert_eq!(blocks(output), [command(None, "one\ntwo")]);
    }
}
