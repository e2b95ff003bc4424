//! diff: what a session changed, as a patch that git applies.

use std::process::Command;

use insta::assert_snapshot;

use crate::rewinding::{git, status, worked};
use crate::test_env::TestEnv;

#[test]
fn changes_are_shown_as_a_diff() {
    let mut env = worked();
    env.say("diff @last");
    env.say("diff @last --from step-2");
    env.say("diff @last --from 3 --to step-2 --json");
    assert_snapshot!(env.transcript());
}

/// Everything a diff has to carry: bytes that are no text, made, changed and gone; modes, also
/// those that git does not keep; links that become files; odd names, and nothing at all.
const EVERYTHING: &str = "answers:
  - text: I do it all.
    calls: [{tool: run_command, arguments: {command: 'sh ../deeds.sh'}}]
  - text: All done.
";

const DEEDS: &str = r#"
head -c 100000 /dev/urandom > made.bin
head -c 3000 /dev/urandom >> changed.bin
rm gone.bin
mv moved.bin 'moved two.bin'
printf 'x' >> 'moved two.bin'
printf 'caf\351\n' > latin1.txt
printf 'no newline' >> text.txt
printf 'a\r\nb\r\n' > crlf.txt
: > empty
: > emptied.txt
chmod 600 text.txt
chmod 444 latin1.txt
chmod 755 run.sh
ln -s text.txt link
rm was-link; echo 'a file' > was-link
rm was-file; ln -s nowhere was-file
rm -r folder; echo 'a file' > folder
printf 'odd\n' > 'odd "name".txt'
mkdir 'deep down'; printf 'x\n' > 'deep down/é.txt'
"#;

#[test]
fn git_applies_a_diff_byte_for_byte_and_takes_it_back() {
    let env = TestEnv::new();
    env.file("script.yaml", EVERYTHING);
    std::fs::write(env.path("deeds.sh"), DEEDS).unwrap();
    let bytes: Vec<u8> =
        (0..20_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 11) as u8).collect();
    for name in ["changed.bin", "gone.bin", "moved.bin"] {
        std::fs::write(env.work().join(name), &bytes).unwrap();
    }
    for name in ["text.txt", "was-file", "run.sh", "folder/one", "folder/two", "emptied.txt"] {
        env.file(name, "one\ntwo\n");
    }
    std::os::unix::fs::symlink("text.txt", env.work().join("was-link")).unwrap();
    env.file(".gitignore", ".stepwell/\n");
    git(&env, &["init", "-q"]);
    git(&env, &["add", "-A"]);
    git(&env, &["commit", "-qm", "x"]);
    let ran = env.quietly(&["run", "go", "--model", "script:script.yaml", "--mode", "yolo"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let tree = |env: &TestEnv| {
        // What git would commit: every byte, and the modes that it knows.
        git(env, &["add", "-A"]);
        let ran = Command::new("git").current_dir(env.work()).arg("write-tree").output().unwrap();
        String::from_utf8(ran.stdout).unwrap()
    };
    let done = tree(&env);
    let diff = env.command(&["diff", "@last"]).output().unwrap().stdout;
    let patch = env.path("patch");
    std::fs::write(&patch, &diff).unwrap();
    let text = String::from_utf8_lossy(&diff);
    assert!(!text.contains("100600") && !text.contains("100444"), "{text}");
    assert!(text.contains("# text.txt: mode 644 became 600\n"), "{text}");
    git(&env, &["reset", "-q", "--hard"]);
    git(&env, &["clean", "-qfd"]);
    let patch = patch.to_str().unwrap();
    git(&env, &["apply", "--check", patch]);
    git(&env, &["apply", "--whitespace=nowarn", patch]);
    assert_eq!(tree(&env), done);
    git(&env, &["apply", "-R", "--check", patch]);
    git(&env, &["apply", "-R", "--whitespace=nowarn", patch]);
    // A link that had become a file comes back as a file, also from a patch of git's own.
    tree(&env);
    assert_eq!(status(&env), "T  was-link\n");
}

#[test]
fn what_was_not_captured_does_not_spoil_a_diff() {
    let mut env = TestEnv::new();
    env.file(
        "script.yaml",
        "- {text: I write., calls: [{tool: run_command, arguments: {command: 'echo 2 > a.txt; echo 2222222222 > big.txt'}}]}\n\
         - {text: Done.}\n",
    );
    env.file("a.txt", "1\n");
    env.file("big.txt", "1111111111\n");
    env.set("STEPWELL_FILES_MAX_FILE_BYTES", "8");
    let ran = env.quietly(&["run", "go", "--model", "script:script.yaml", "--mode", "yolo"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let diff = env.quietly(&["diff", "@last"]).stdout;
    assert!(diff.contains("# big.txt: before: not captured"), "{diff}");
    assert_eq!(diff.matches("diff --git").count(), 1, "{diff}");
    std::fs::write(env.path("patch"), &diff).unwrap();
    env.file("a.txt", "1\n");
    git(&env, &["init", "-q"]);
    git(&env, &["apply", env.path("patch").to_str().unwrap()]);
    assert_eq!(env.read("a.txt"), "2\n");
}

#[test]
fn the_mode_of_a_file_that_came_is_told_where_git_has_no_word_for_it() {
    let env = TestEnv::new();
    let command =
        "umask 022; for mode in 600 4755 644 755; do echo x > f$mode; chmod $mode f$mode; done";
    env.file(
        "script.yaml",
        &format!("- {{text: I make., calls: [{{tool: run_command, arguments: {{command: '{command}'}}}}]}}\n- {{text: Done.}}\n"),
    );
    let run = ["run", "go", "--model", "script:script.yaml", "--mode", "yolo"];
    assert_eq!(env.quietly(&run).code, Some(0));
    let diff = env.quietly(&["diff", "@last"]).stdout;
    let remarks: Vec<&str> = diff.lines().filter(|line| line.starts_with('#')).collect();
    assert_eq!(remarks, ["# f4755: mode 4755", "# f600: mode 600"], "{diff}");
}
