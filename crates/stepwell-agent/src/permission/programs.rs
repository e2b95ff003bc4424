//! What programs do with their arguments: which of them run a command that stands there.

/// How a program treats its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It runs none of them.
    Plain,
    /// What it runs cannot be told from its arguments.
    Opaque,
    Shell,
    Interpreter,
    Awk,
    Eval,
    Trap,
    Find,
    Parallel,
    Git,
    /// It runs the command behind its own options.
    Wrapper(&'static Wrapper, Gives),
    /// It is not in the table.
    Unknown,
}

/// How a wrapper gives its arguments to what it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gives {
    /// As they are.
    Words,
    /// With more words behind them, which it reads.
    MoreWords,
    /// As code, to a shell.
    Code,
}

/// A program that runs the command behind its own options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wrapper {
    pub(super) name: &'static str,
    /// The letters of options that take the next word.
    pub(super) short: &'static str,
    /// Long options that take the next word.
    pub(super) long: &'static [&'static str],
    /// How many words stand between the options and the command.
    pub(super) operands: usize,
    /// Do variables that it sets stand before the command?
    pub(super) sets_variables: bool,
    /// Options with which it runs nothing.
    pub(super) only_tells: &'static [&'static str],
}

impl Wrapper {
    const fn new(name: &'static str, short: &'static str, long: &'static [&'static str]) -> Self {
        Self { name, short, long, operands: 0, sets_variables: false, only_tells: &[] }
    }

    const fn behind(self, operands: usize) -> Self {
        Self { operands, ..self }
    }

    const fn setting_variables(self) -> Self {
        Self { sets_variables: true, ..self }
    }

    const fn telling(self, only_tells: &'static [&'static str]) -> Self {
        Self { only_tells, ..self }
    }
}

/// GNU parallel, up to where its arguments come from.
pub(super) const PARALLEL: Wrapper = Wrapper::new(
    "parallel",
    "jISanNLdEC",
    &[
        "--jobs",
        "--arg-file",
        "--colsep",
        "--delay",
        "--joblog",
        "--max-args",
        "--timeout",
        "--workdir",
    ],
);

/// Programs that run the command behind their own options.
const WRAPPERS: &[Wrapper] = &[
    Wrapper::new(
        "sudo",
        "CDghpRrTtUu",
        &[
            "--user",
            "--group",
            "--host",
            "--prompt",
            "--chdir",
            "--chroot",
            "--close-from",
            "--role",
            "--type",
        ],
    )
    .setting_variables(),
    Wrapper::new("doas", "Cu", &[]).setting_variables(),
    Wrapper::new("env", "uCS", &["--unset", "--chdir"]).setting_variables(),
    Wrapper::new("command", "", &[]).telling(&["-v", "-V"]),
    Wrapper::new("exec", "a", &[]),
    Wrapper::new("builtin", "", &[]),
    Wrapper::new("noglob", "", &[]),
    Wrapper::new("nocorrect", "", &[]),
    Wrapper::new("coproc", "", &[]),
    Wrapper::new("repeat", "", &[]).behind(1),
    Wrapper::new("nohup", "", &[]),
    Wrapper::new("nice", "n", &["--adjustment"]),
    Wrapper::new("ionice", "cnpPu", &["--class", "--classdata", "--pid"]),
    Wrapper::new("chrt", "TPDp", &["--sched-runtime", "--sched-period", "--sched-deadline"])
        .behind(1),
    Wrapper::new("taskset", "", &[]).behind(1),
    Wrapper::new(
        "numactl",
        "NmpiCl",
        &["--cpunodebind", "--membind", "--interleave", "--physcpubind"],
    ),
    Wrapper::new("prlimit", "p", &["--pid"]),
    Wrapper::new("time", "fo", &["--format", "--output"]),
    Wrapper::new("timeout", "ks", &["--kill-after", "--signal"]).behind(1),
    Wrapper::new("stdbuf", "ioe", &["--input", "--output", "--error"]),
    Wrapper::new("unbuffer", "", &[]),
    Wrapper::new("setsid", "", &[]),
    Wrapper::new("setpriv", "", &["--reuid", "--regid", "--groups"]),
    Wrapper::new("setarch", "", &[]).behind(1),
    Wrapper::new(
        "strace",
        "aAbeEIoOpPsSuUX",
        &["--trace", "--output", "--attach", "--user", "--env"],
    ),
    Wrapper::new("ltrace", "aeAlnopsSuxwDF", &["--output"]),
    Wrapper::new("valgrind", "", &[]),
    Wrapper::new("ssh-agent", "aEOPt", &[]),
    Wrapper::new("dbus-run-session", "", &["--config-file"]),
    Wrapper::new(
        "xvfb-run",
        "efnpsw",
        &["--server-num", "--server-args", "--error-file", "--auth-file"],
    ),
    Wrapper::new("fakeroot", "lfibsu", &[]),
    Wrapper::new("chroot", "", &[]).behind(1),
    Wrapper::new("unshare", "SGRw", &["--root", "--wd", "--setuid", "--setgid"]),
    Wrapper::new("nsenter", "tSGrw", &["--target", "--setuid", "--setgid"]),
    Wrapper::new("systemd-run", "uptHME", &["--unit", "--property", "--uid", "--gid", "--setenv"]),
    Wrapper::new("systemd-inhibit", "", &[]),
    Wrapper::new("caffeinate", "tw", &[]),
    Wrapper::new("gdb", "", &[]),
    Wrapper::new("busybox", "", &[]).telling(&["--list", "--help"]),
    Wrapper::new("toybox", "", &[]).telling(&["--help", "--version"]),
    Wrapper::new("flock", "wE", &["--timeout", "--wait", "--conflict-exit-code"]).behind(1),
];

/// `watch` gives its arguments to a shell.
const WATCH: Wrapper = Wrapper::new("watch", "nq", &["--interval", "--equexit"]);

/// `xargs` puts what it reads behind the command.
const XARGS: Wrapper = Wrapper::new(
    "xargs",
    "aEIJLnPRsSd",
    &[
        "--arg-file",
        "--delimiter",
        "--max-lines",
        "--max-args",
        "--max-procs",
        "--max-chars",
        "--process-slot-var",
    ],
);

const SHELLS: [&str; 12] =
    ["sh", "bash", "zsh", "dash", "ksh", "ash", "mksh", "yash", "rbash", "ksh93", "posh", "hush"];

/// Shells of another language, and words of the shell that change what other words mean.
const OPAQUE: [&str; 12] = [
    "source", ".", "alias", "hash", "enable", "bind", "fish", "csh", "tcsh", "nu", "pwsh", "elvish",
];

const INTERPRETERS: [&str; 29] = [
    "python",
    "perl",
    "ruby",
    "irb",
    "node",
    "nodejs",
    "deno",
    "bun",
    "php",
    "lua",
    "luajit",
    "tclsh",
    "expect",
    "osascript",
    "Rscript",
    "guile",
    "racket",
    "julia",
    "groovy",
    "scala",
    "ghc",
    "elixir",
    "erl",
    "vi",
    "vim",
    "nvim",
    "ex",
    "ed",
    "emacs",
];

/// Long options behind which code stands.
pub(super) const CODE_OPTIONS: [&str; 9] = [
    "--eval",
    "--execute",
    "--print",
    "--run",
    "--command",
    "--cmd",
    "--require",
    "--import",
    "--expression",
];

const PLAIN: [&str; 84] = [
    "echo",
    "printf",
    "cat",
    "ls",
    "cd",
    "pwd",
    "pushd",
    "popd",
    "test",
    "[",
    "[[",
    "true",
    "false",
    ":",
    "mkdir",
    "rmdir",
    "touch",
    "rm",
    "chmod",
    "chown",
    "chgrp",
    "grep",
    "egrep",
    "fgrep",
    "head",
    "tail",
    "wc",
    "uniq",
    "cut",
    "tr",
    "diff",
    "cmp",
    "comm",
    "tee",
    "basename",
    "dirname",
    "date",
    "sleep",
    "stat",
    "file",
    "du",
    "df",
    "id",
    "whoami",
    "uname",
    "hostname",
    "which",
    "type",
    "whereis",
    "unset",
    "set",
    "shift",
    "return",
    "exit",
    "break",
    "continue",
    "read",
    "wait",
    "jobs",
    "kill",
    "ps",
    "seq",
    "expr",
    "realpath",
    "readlink",
    "md5sum",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "b2sum",
    "cksum",
    "base64",
    "xxd",
    "od",
    "hexdump",
    "jq",
    "nl",
    "tac",
    "rev",
    "fold",
    "paste",
    "column",
    "mktemp",
    "tree",
];

/// Git's subcommands that run none of their arguments.
pub(super) const GIT: [&str; 45] = [
    "add",
    "am",
    "annotate",
    "apply",
    "blame",
    "branch",
    "cat-file",
    "checkout",
    "cherry",
    "cherry-pick",
    "clean",
    "clone",
    "commit",
    "commit-tree",
    "describe",
    "diff",
    "diff-tree",
    "fetch",
    "gc",
    "grep",
    "help",
    "init",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge",
    "merge-base",
    "mv",
    "notes",
    "pull",
    "push",
    "reflog",
    "remote",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "revert",
    "rm",
    "show",
    "stash",
    "status",
    "switch",
    "tag",
];

/// Options of these subcommands that name a program.
pub(super) const GIT_PROGRAM_OPTIONS: [&str; 9] = [
    "--upload-pack",
    "--receive-pack",
    "--exec",
    "-x",
    "-u",
    "--open-files-in-pager",
    "--config",
    "-c",
    "--ext-diff",
];

/// Git's settings that name no program.
pub(super) fn is_harmless_setting(setting: &str) -> bool {
    const HARMLESS: [&str; 12] = [
        "color.",
        "user.",
        "advice.",
        "log.",
        "core.quotepath",
        "core.autocrlf",
        "init.defaultbranch",
        "commit.gpgsign=false",
        "tag.gpgsign=false",
        "gc.auto",
        "diff.noprefix",
        "safe.directory",
    ];
    let setting = setting.to_ascii_lowercase();
    HARMLESS.iter().any(|harmless| setting.starts_with(harmless))
}

/// How a program treats its arguments.
pub(super) fn kind(name: &str) -> Kind {
    // python3.12 is python.
    let unversioned = name.trim_end_matches(|it: char| it.is_ascii_digit() || it == '.');
    match name {
        "eval" => Kind::Eval,
        "trap" => Kind::Trap,
        "find" | "gfind" => Kind::Find,
        "parallel" => Kind::Parallel,
        "git" => Kind::Git,
        "watch" => Kind::Wrapper(&WATCH, Gives::Code),
        "xargs" | "gxargs" => Kind::Wrapper(&XARGS, Gives::MoreWords),
        "awk" | "gawk" | "mawk" | "nawk" => Kind::Awk,
        _ if PLAIN.contains(&name) => Kind::Plain,
        _ if OPAQUE.contains(&name) => Kind::Opaque,
        _ if SHELLS.contains(&name) => Kind::Shell,
        _ if INTERPRETERS.contains(&unversioned) => Kind::Interpreter,
        _ => match WRAPPERS.iter().find(|wrapper| wrapper.name == name) {
            Some(wrapper) => Kind::Wrapper(wrapper, Gives::Words),
            None => Kind::Unknown,
        },
    }
}
