//! The file tools: they stay in the workspace, and make the changes that they announce.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use stepwell::model::{Digest, Effect, Outcome};
use stepwell_agent::tool::{Content, Done, Tool, ToolEnv, builtin};
use stepwell_files::safe_fs::look;
use tempfile::TempDir;

pub(crate) fn tool(name: &str) -> Arc<dyn Tool> {
    builtin().into_iter().find(|tool| tool.spec().name == name).unwrap()
}

pub(crate) fn place(root: &Path) -> ToolEnv {
    ToolEnv {
        command_timeout: Duration::from_secs(60),
        output_limit: 4096,
        ..ToolEnv::new(root.canonicalize().unwrap())
    }
}

/// A workspace beside a folder that no tool may reach.
struct Workspace {
    _keep: TempDir,
    place: ToolEnv,
    outside: std::path::PathBuf,
}

impl Workspace {
    fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let (root, outside) = (keep.path().join("work"), keep.path().join("outside"));
        for folder in [&root, &outside, &root.join(".stepwell"), &root.join("src")] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(outside.join("secret.txt"), "outside").unwrap();
        fs::write(root.join(".stepwell/stepwell.db"), "own").unwrap();
        fs::write(root.join("src/main.rs"), "fn main() {}\n").unwrap();
        Self { place: place(&root), outside: outside.canonicalize().unwrap(), _keep: keep }
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.place.root.join(path)
    }

    fn run(&self, name: &str, arguments: &Value) -> Done {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(tool(name).run(arguments, &self.place))
    }

    fn ok(&self, name: &str, arguments: &Value) -> String {
        let done = self.run(name, arguments);
        assert_eq!(done.outcome, Outcome::Done, "{}", done.text);
        done.text
    }

    fn fails(&self, name: &str, arguments: &Value) -> String {
        let done = self.run(name, arguments);
        assert_eq!(done.outcome, Outcome::Failed, "{}", done.text);
        assert!(done.changed.is_empty());
        done.text
    }
}

/// Every tool that takes a path, with arguments that would have an effect there.
fn with_path(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("read_file", json!({ "path": path })),
        ("write_file", json!({ "path": path, "content": "x" })),
        ("edit_file", json!({ "path": path, "old_text": "o", "new_text": "x" })),
        ("delete_file", json!({ "path": path })),
        ("list_files", json!({ "path": path })),
        ("search", json!({ "path": path, "pattern": "." })),
    ]
}

#[test]
fn no_path_leaves_the_workspace_or_enters_our_own_folder() {
    let workspace = Workspace::new();
    let outside = workspace.outside.to_str().unwrap().to_owned();
    symlink(&workspace.outside, workspace.path("out")).unwrap();
    symlink("../outside", workspace.path("out-relative")).unwrap();
    symlink("out-relative", workspace.path("out-chain")).unwrap();
    symlink(".stepwell", workspace.path("own")).unwrap();
    symlink("src/..", workspace.path("root")).unwrap();
    symlink(workspace.outside.join("new"), workspace.path("dangling")).unwrap();
    symlink("loop", workspace.path("loop")).unwrap();
    let root = workspace.place.root.to_str().unwrap().to_owned();
    let escapes = [
        "",
        "\0",
        "src/\0",
        "..",
        "../outside/secret.txt",
        "src/../../outside/secret.txt",
        "./../outside/secret.txt",
        "/etc/passwd",
        "/",
        "out/secret.txt",
        "out/new.txt",
        "out/new/deeper.txt",
        "out-relative/secret.txt",
        "out-chain/secret.txt",
        "root/../outside",
        "root/out/secret.txt",
        "new/../../outside/secret.txt",
        "src/main.rs/../../../outside",
        ".stepwell/stepwell.db",
        ".stepwell/new",
        ".StepWell/stepwell.db",
        ".STEPWELL/new",
        "./.stepwell/stepwell.db",
        "src/../.stepwell/stepwell.db",
        "own/stepwell.db",
        "own/new",
        "root/.stepwell/stepwell.db",
        "src/.stepwell/nested",
        "new/.Stepwell/nested",
        "loop/x",
    ];
    let mut escapes: Vec<String> = escapes.map(str::to_owned).to_vec();
    escapes.push(format!("{outside}/secret.txt"));
    escapes.push(format!("{root}/../outside/secret.txt"));
    escapes.push(format!("{root}/src/../../outside/secret.txt"));
    escapes.push(format!("{root}-sibling/x"));
    escapes.push(format!("{root}/.stepwell/stepwell.db"));
    for escape in &escapes {
        for (name, arguments) in with_path(escape) {
            let why = workspace.fails(name, &arguments);
            assert!(!why.contains("own\n") && !why.contains("outside\n"), "{name} {escape}: {why}");
            if !matches!(name, "read_file" | "list_files" | "search") {
                assert!(tool(name).plan(&arguments, &workspace.place).is_err(), "{name} {escape}");
            }
        }
    }
    // Following the link would create or read a file outside; deleting it deletes only the link.
    for escape in ["dangling", "loop", "out", "own"] {
        for (name, arguments) in with_path(escape) {
            if name != "delete_file" {
                workspace.fails(name, &arguments);
            }
        }
    }
    assert_eq!(fs::read_to_string(workspace.outside.join("secret.txt")).unwrap(), "outside");
    assert_eq!(fs::read_dir(&workspace.outside).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(workspace.path(".stepwell/stepwell.db")).unwrap(), "own");
    assert_eq!(fs::read_dir(workspace.path(".stepwell")).unwrap().count(), 1);
}

#[test]
fn a_folder_that_is_swapped_for_a_link_meanwhile_leads_nowhere() {
    let workspace = Workspace::new();
    let (folder, aside) = (workspace.path("src"), workspace.path("aside"));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                fs::rename(&folder, &aside).unwrap();
                symlink(&workspace.outside, &folder).unwrap();
                fs::remove_file(&folder).unwrap();
                fs::rename(&aside, &folder).unwrap();
            }
        });
        let read = json!({ "path": "src/secret.txt" });
        for n in 0..300 {
            assert_eq!(workspace.run("read_file", &read).outcome, Outcome::Failed);
            workspace.run("delete_file", &read);
            let (old, new) = ("outside", n.to_string());
            let edit = json!({ "path": "src/secret.txt", "old_text": old, "new_text": new });
            workspace.run("edit_file", &edit);
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(fs::read_to_string(workspace.outside.join("secret.txt")).unwrap(), "outside");
}

#[test]
fn our_own_folder_is_known_by_more_than_its_name() {
    let workspace = Workspace::new();
    fs::rename(workspace.path(".stepwell"), workspace.path("real")).unwrap();
    symlink("real", workspace.path(".stepwell")).unwrap();
    workspace.fails("read_file", &json!({ "path": "real/stepwell.db" }));
    // An unreadable file does not end the search of the others.
    let found = workspace.ok("search", &json!({ "pattern": "main|own" }));
    assert_eq!(found, "src/main.rs:1: fn main() {}\n\n[not read: 1 file]");
}

#[test]
fn paths_that_stay_inside_are_fine_however_they_are_written() {
    let workspace = Workspace::new();
    symlink("src", workspace.path("link")).unwrap();
    symlink("main.rs", workspace.path("src/alias.rs")).unwrap();
    symlink(workspace.path("src"), workspace.path("absolute")).unwrap();
    let around = workspace.place.root.parent().unwrap().join("around");
    symlink(&workspace.place.root, &around).unwrap();
    let absolute = workspace.path("src/main.rs").to_str().unwrap().to_owned();
    let by_link = around.join("src/main.rs").to_str().unwrap().to_owned();
    let fine = [
        "src/main.rs",
        "./src//main.rs",
        "src/../src/main.rs",
        "link/main.rs",
        "src/alias.rs",
        "absolute/main.rs",
        &absolute,
        &by_link,
    ];
    for path in fine {
        assert_eq!(workspace.ok("read_file", &json!({ "path": path })), "fn main() {}\n", "{path}");
        let arguments = json!({ "path": path, "content": "x" });
        let plan = tool("write_file").plan(&arguments, &workspace.place).unwrap();
        assert_eq!(plan.targets[0].path, "src/main.rs", "{path}");
    }
    workspace.ok("write_file", &json!({ "path": "link/new/deep.txt", "content": "x" }));
    assert_eq!(fs::read_to_string(workspace.path("src/new/deep.txt")).unwrap(), "x");
}

#[test]
fn a_plan_says_what_a_run_then_does() {
    let workspace = Workspace::new();
    let before = Digest::of(b"fn main() {}\n");
    let cases = [
        ("write_file", json!({ "path": "a/b/new.txt", "content": "new" }), "a/b/new.txt", None),
        (
            "edit_file",
            json!({ "path": "src/main.rs", "old_text": "{}", "new_text": "{ }" }),
            "src/main.rs",
            Some(before),
        ),
        ("write_file", json!({ "path": "src/main.rs", "content": "" }), "src/main.rs", None),
        ("delete_file", json!({ "path": "src/main.rs" }), "src/main.rs", Some(Digest::of(b""))),
    ];
    for (name, arguments, path, expected) in cases {
        let plan = tool(name).plan(&arguments, &workspace.place).unwrap();
        let [target] = &plan.targets[..] else { panic!("{plan:?}") };
        assert_eq!(target.path, path);
        assert_eq!(target.before, look(&workspace.place.files(), path).unwrap().digest());
        if expected.is_some() {
            assert_eq!(target.before, expected);
        }
        let done = workspace.run(name, &arguments);
        assert_eq!(done.outcome, Outcome::Done, "{}", done.text);
        assert_eq!(target.after, look(&workspace.place.files(), path).unwrap().digest(), "{name}");
        let [changed] = &done.changed[..] else { panic!("{done:?}") };
        assert_eq!((changed.path.as_str(), changed.before.digest()), (path, target.before));
        assert_eq!(changed.after, look(&workspace.place.files(), path).unwrap());
    }
}

#[test]
fn writing_what_stands_there_already_changes_nothing() {
    let workspace = Workspace::new();
    let arguments = json!({ "path": "src/main.rs", "content": "fn main() {}\n" });
    let done = workspace.run("write_file", &arguments);
    assert_eq!((done.outcome, done.changed), (Outcome::Done, Vec::new()));
}

#[test]
fn a_file_is_replaced_whole_and_keeps_its_mode() {
    let workspace = Workspace::new();
    let path = workspace.path("src/main.rs");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
    let mut reader = fs::File::open(&path).unwrap();
    workspace.ok("write_file", &json!({ "path": "src/main.rs", "content": "new" }));
    // A reader that had the file open still reads the old content: the file was replaced, not
    // overwritten.
    assert_eq!(std::io::read_to_string(&mut reader).unwrap(), "fn main() {}\n");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o750);
    assert_eq!(fs::read_dir(workspace.path("src")).unwrap().count(), 1, "nothing is left beside");
}

#[test]
fn what_a_killed_write_left_is_taken_over_by_the_next() {
    let workspace = Workspace::new();
    // A write that cannot end in a rename leaves nothing behind.
    fs::create_dir(workspace.path("taken")).unwrap();
    workspace.fails("write_file", &json!({ "path": "taken", "content": "x" }));
    // The name of the temporary file is the same each time.
    let scratch = {
        let digest = Digest::of(b"main.rs").to_string();
        workspace.path("src").join(format!(".stepwell-new-{}", &digest[..16]))
    };
    fs::write(&scratch, "half of something that was longer than it will be").unwrap();
    assert_eq!(workspace.ok("list_files", &json!({})), "src/main.rs\n");
    workspace.ok("write_file", &json!({ "path": "src/main.rs", "content": "new" }));
    assert!(!scratch.exists());
    assert_eq!(fs::read_to_string(workspace.path("src/main.rs")).unwrap(), "new");
}

#[test]
fn writers_of_one_file_leave_one_of_their_contents() {
    let workspace = Workspace::new();
    let contents: Vec<String> = (0..4).map(|n| n.to_string().repeat(100_000)).collect();
    std::thread::scope(|scope| {
        for content in &contents {
            let (workspace, contents) = (&workspace, &contents);
            scope.spawn(move || {
                for _ in 0..10 {
                    workspace.ok("write_file", &json!({ "path": "f", "content": content }));
                    let seen = fs::read_to_string(workspace.path("f")).unwrap();
                    assert!(contents.contains(&seen), "{} bytes of a mixture", seen.len());
                }
            });
        }
    });
    assert_eq!(fs::read_dir(&workspace.place.root).unwrap().count(), 3);
}

#[test]
fn a_link_is_deleted_itself() {
    let workspace = Workspace::new();
    symlink("src/main.rs", workspace.path("link")).unwrap();
    let arguments = json!({ "path": "link" });
    let plan = tool("delete_file").plan(&arguments, &workspace.place).unwrap();
    assert_eq!(plan.targets[0].before, look(&workspace.place.files(), "link").unwrap().digest());
    let done = workspace.run("delete_file", &arguments);
    assert_eq!(done.changed[0].before, Content::Symlink("src/main.rs".to_owned()));
    assert!(workspace.path("src/main.rs").exists() && !workspace.path("link").is_symlink());
}

#[test]
fn what_is_no_text_file_is_refused_with_its_reason() {
    let workspace = Workspace::new();
    fs::write(workspace.path("binary"), [0, 159, 146, 150]).unwrap();
    assert!(
        workspace
            .fails("read_file", &json!({ "path": "binary" }))
            .contains("binary file (4 bytes)")
    );
    let edit = json!({ "path": "binary", "old_text": "a", "new_text": "b" });
    assert!(workspace.fails("edit_file", &edit).contains("binary"));
    assert!(workspace.fails("read_file", &json!({ "path": "src" })).contains("folder"));
    assert!(workspace.fails("delete_file", &json!({ "path": "src" })).contains("folder"));
    assert!(workspace.fails("read_file", &json!({ "path": "none" })).contains("no such file"));
    assert!(workspace.fails("read_file", &json!({ "file": "none" })).contains("wrong arguments"));
    let fifo = std::process::Command::new("mkfifo").arg(workspace.path("pipe")).status().unwrap();
    assert!(fifo.success());
    assert!(workspace.fails("read_file", &json!({ "path": "pipe" })).contains("regular"));
    let huge = fs::File::create(workspace.path("huge")).unwrap();
    huge.set_len(60 << 20).unwrap();
    assert!(workspace.fails("read_file", &json!({ "path": "huge" })).contains("larger than"));
}

#[test]
fn a_binary_file_may_be_replaced_and_deleted() {
    let workspace = Workspace::new();
    fs::write(workspace.path("binary"), [0, 159]).unwrap();
    workspace.ok("write_file", &json!({ "path": "binary", "content": "text" }));
    fs::write(workspace.path("binary"), [0, 159]).unwrap();
    workspace.ok("delete_file", &json!({ "path": "binary" }));
}

#[test]
fn answers_are_limited() {
    let mut workspace = Workspace::new();
    workspace.place.output_limit = 100;
    let lines: String = (1..=1000).map(|n| format!("line {n}\n")).collect();
    fs::write(workspace.path("long"), lines).unwrap();
    let read = workspace.ok("read_file", &json!({ "path": "long" }));
    assert!(read.len() < 200 && read.ends_with("read on with first_line 14]"), "{read}");
    let read = workspace.ok("read_file", &json!({ "path": "long", "first_line": 999 }));
    assert_eq!(read, "line 999\nline 1000\n[lines 999 to 1000 of 1000]");
    let found = workspace.ok("search", &json!({ "pattern": "line" }));
    assert!(found.len() < 300 && found.contains("to see others"), "{found}");
    for n in 0..50 {
        fs::write(workspace.path(&format!("file-{n}")), "").unwrap();
    }
    let listed = workspace.ok("list_files", &json!({}));
    assert!(listed.len() < 200 && listed.contains("more files"), "{listed}");
}

#[test]
fn a_search_shows_no_more_than_a_part_of_a_line() {
    let workspace = Workspace::new();
    fs::write(workspace.path("min.js"), "x".repeat(5000)).unwrap();
    let found = workspace.ok("search", &json!({ "pattern": "x" }));
    assert!(found.starts_with("min.js:1: xxx") && found.contains("[4600 bytes more]"), "{found}");
}

#[test]
fn listing_and_search_see_what_git_sees() {
    let workspace = Workspace::new();
    fs::create_dir_all(workspace.path("target/debug")).unwrap();
    fs::create_dir_all(workspace.path(".git")).unwrap();
    fs::create_dir_all(workspace.path(".github")).unwrap();
    fs::write(workspace.path(".gitignore"), "target/\n*.log\n").unwrap();
    for path in ["target/debug/a.rs", ".git/config", ".github/ci.yml", "b.log", "src/lib.rs"] {
        fs::write(workspace.path(path), "needle\n").unwrap();
    }
    fs::write(workspace.path("binary"), b"needle\0").unwrap();
    symlink(workspace.outside.join("secret.txt"), workspace.path("out.txt")).unwrap();
    let listed = workspace.ok("list_files", &json!({}));
    let expected = ".github/ci.yml\n.gitignore\nbinary\nout.txt\nsrc/lib.rs\nsrc/main.rs\n";
    assert_eq!(listed, expected);
    assert_eq!(
        workspace.ok("list_files", &json!({ "path": "src", "glob": "l*.rs" })),
        "src/lib.rs\n"
    );
    assert_eq!(workspace.ok("list_files", &json!({ "glob": "*.log" })), "[no files]");
    let found = workspace.ok("search", &json!({ "pattern": "^n.*e$" }));
    assert_eq!(found, ".github/ci.yml:1: needle\nsrc/lib.rs:1: needle\n");
    let found = workspace
        .ok("search", &json!({ "pattern": "NEEDLE", "ignore_case": true, "glob": "*.rs" }));
    assert_eq!(found, "src/lib.rs:1: needle\n");
    assert_eq!(workspace.ok("search", &json!({ "pattern": "outside" })), "[no line matches]");
    // An ignored folder that is named explicitly is searched.
    let found = workspace.ok("search", &json!({ "pattern": "needle", "path": "target" }));
    assert_eq!(found, "target/debug/a.rs:1: needle\n");
    let found = workspace.ok("search", &json!({ "pattern": "main", "path": "src/main.rs" }));
    assert_eq!(found, "src/main.rs:1: fn main() {}\n");
    assert!(workspace.fails("search", &json!({ "pattern": "(" })).contains("invalid pattern"));
    assert!(workspace.fails("list_files", &json!({ "path": "none" })).contains("no such"));
    assert!(workspace.fails("list_files", &json!({ "glob": "[" })).contains("glob"));
}

#[test]
fn each_tool_says_what_it_is() {
    for tool in builtin() {
        let spec = tool.spec();
        assert_eq!(spec.parameters["type"], "object", "{}", spec.name);
        assert_eq!(spec.parameters["additionalProperties"], false, "{}", spec.name);
        let properties = spec.parameters["properties"].as_object().unwrap();
        assert!(properties.values().all(|property| property["description"].is_string()));
        let required = spec.parameters["required"].as_array().unwrap();
        assert!(required.iter().all(|name| properties.contains_key(name.as_str().unwrap())));
        let effect = match spec.name.as_str() {
            "read_file" | "list_files" | "search" | "tasks" => Effect::Pure,
            "write_file" | "edit_file" | "delete_file" => Effect::Idempotent,
            "dispatch_subagent" => Effect::Resumable,
            _ => Effect::Unsafe,
        };
        assert_eq!(tool.effect(), effect, "{}", spec.name);
        assert!(!tool.preview(&json!("nonsense")).contains('\n'));
    }
}

#[test]
fn file_tools_do_not_change_what_git_runs() {
    let workspace = Workspace::new();
    for folder in [".git/hooks", "sub/.git", "bare.git/objects", "bare.git/refs", "half/objects"] {
        fs::create_dir_all(workspace.path(folder)).unwrap();
    }
    fs::create_dir(workspace.path("half/refs")).unwrap();
    for file in [".git/config", "sub/.git/config", "bare.git/HEAD", "bare.git/config"] {
        fs::write(workspace.path(file), "o").unwrap();
    }
    fs::write(workspace.path("module"), "o").unwrap();
    symlink(".git", workspace.path("link")).unwrap();
    symlink(".git/config", workspace.path("config")).unwrap();
    let changing = |path: &str| {
        with_path(path)
            .into_iter()
            .filter(|(name, _)| ["write_file", "edit_file", "delete_file"].contains(name))
            .collect::<Vec<_>>()
    };
    for path in
        [".git/config", "sub/.git/config", "bare.git/config", "link/config", "src/../.git/config"]
    {
        for (name, arguments) in changing(path) {
            let why = workspace.fails(name, &arguments);
            assert!(why.contains("one of git's own files"), "{name} {path}: {why}");
        }
        assert!(workspace.ok("read_file", &json!({ "path": path })).contains('o'));
    }
    // A folder with these two files looks to git like a worktree's part of a repository.
    workspace.ok("write_file", &json!({ "path": "part/commondir", "content": "../half" }));
    let made = [".git/hooks/pre-commit", ".GIT/config", "src/.git", "half/HEAD", "part/HEAD"];
    for path in made.into_iter().chain(["config"]) {
        let why = workspace.fails("write_file", &json!({ "path": path, "content": "x" }));
        assert!(why.contains("one of git's own files"), "{path}: {why}");
    }
    assert_eq!(fs::read_to_string(workspace.path(".git/config")).unwrap(), "o");
    for path in [".gitignore", ".github/x.yml", "src/HEAD", "objects/x"] {
        workspace.ok("write_file", &json!({ "path": path, "content": "x" }));
    }
}

#[test]
fn hooks_in_a_folder_that_the_repository_names_are_gits() {
    let workspace = Workspace::new();
    fs::create_dir_all(workspace.path(".git")).unwrap();
    fs::create_dir_all(workspace.path("tools/hooks")).unwrap();
    fs::write(workspace.path(".git/config"), "[core]\n\thooksPath = tools/hooks\n").unwrap();
    symlink("tools", workspace.path("link")).unwrap();
    for path in ["tools/hooks/pre-commit", "link/hooks/pre-commit"] {
        let why = workspace.fails("write_file", &json!({ "path": path, "content": "touch pwned" }));
        assert!(why.contains("git runs this file"), "{path}: {why}");
    }
    assert!(!workspace.path("tools/hooks/pre-commit").exists());
    workspace.ok("write_file", &json!({ "path": "tools/build", "content": "x" }));
    // A folder whose name is known needs an approval every time instead.
    fs::write(workspace.path(".git/config"), "[core]\n\thooksPath = .githooks\n").unwrap();
    workspace.ok("write_file", &json!({ "path": ".githooks/pre-commit", "content": "x" }));
}

#[test]
fn a_link_to_what_others_run_has_to_be_named() {
    let workspace = Workspace::new();
    symlink(".envrc", workspace.path("harmless")).unwrap();
    let why = workspace.fails("write_file", &json!({ "path": "harmless", "content": "x" }));
    assert!(why.contains("leads to .envrc"), "{why}");
    workspace.ok("write_file", &json!({ "path": ".envrc", "content": "x" }));
}

#[test]
fn a_name_with_a_line_break_is_one_line() {
    let workspace = Workspace::new();
    fs::write(workspace.path("one\ntwo.txt"), "needle\n").unwrap();
    let listed = workspace.ok("list_files", &json!({ "glob": "*.txt" }));
    assert_eq!(listed, "\"one\\ntwo.txt\"\n");
    let found = workspace.ok("search", &json!({ "pattern": "needle" }));
    assert_eq!(found, "\"one\\ntwo.txt\":1: needle\n");
}
