//! Programs by how they treat their arguments.
//!
//! The tables list programs that never run their arguments, and wrappers whose options are known.
//! Any other program may run any of its arguments.

use super::shell::is_unknown;

/// How a program treats its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It runs none of them, unless an option says so.
    Data(&'static Data),
    /// It sets variables.
    Sets,
    /// It evaluates variable names and numbers, in which bash runs code.
    Names,
    /// It runs them in an unknown way.
    Runner,
    /// Its arguments do not show what it runs.
    Opaque,
    Shell,
    /// It runs code of another language: a file, an argument, or its input.
    Interpreter,
    /// It runs commands from its input.
    Editor,
    Awk,
    Sed,
    Eval,
    Trap,
    Find,
    Git,
    /// It runs the command after its own options.
    Wrapper(&'static Wrapper),
    /// It is not in a table.
    Unknown,
}

/// A program that never runs its arguments.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Data {
    names: &'static str,
    /// The subcommands for which that holds; empty for all.
    subcommands: &'static str,
    /// Options that do name a program.
    pub(super) runs: &'static str,
}

impl Data {
    pub(super) fn has_subcommand(&self, subcommand: &str) -> bool {
        self.subcommands.is_empty() || has(self.subcommands, subcommand)
    }
}

const fn data(names: &'static str, subcommands: &'static str, runs: &'static str) -> Data {
    Data { names, subcommands, runs }
}

const DATA: &[Data] = &[
    data(
        "echo cat ls cd pwd pushd popd true false : mkdir rmdir touch rm chmod chown chgrp grep egrep \
         fgrep head tail wc uniq cut tr diff cmp comm tee basename dirname date sleep stat file du df \
         id whoami uname hostname which type whereis shift return exit break continue jobs kill ps seq \
         expr realpath readlink md5sum sha1sum sha256sum sha512sum b2sum cksum base64 xxd od hexdump \
         jq nl tac rev fold paste column mktemp tree umask curl",
        "",
        "",
    ),
    data("sort", "", "--compress-program"),
    data("rg", "", "--pre --hostname-bin"),
    data(
        "cargo",
        "add bench build b check c clean clippy doc fetch fmt info init locate-project metadata new \
         nextest owner package pkgid publish remove search test t tree update vendor version",
        "--config -Z",
    ),
    // `gh repo clone` passes options on to git.
    data(
        "gh",
        "api auth gist issue label pr release repo run search status workflow",
        "-c -u --config --template --upload-pack",
    ),
    data(
        "docker podman",
        "build images info inspect logs ps pull push rm rmi stop tag version",
        "",
    ),
];

/// Programs that print a file unchanged, so that their output can be a copy of a program.
pub(super) const COPIES: &str = "cat tac head tail tee base64 xxd curl";

/// Git's subcommands that run none of their arguments.
pub(super) const GIT: Data = data(
    "git",
    "add am annotate apply blame branch cat-file check-ignore checkout cherry cherry-pick clean clone \
     commit commit-tree count-objects describe diff diff-tree fetch fsck gc grep help init log ls-files \
     ls-remote ls-tree merge merge-base mv name-rev notes pull push range-diff reflog remote reset \
     restore rev-list rev-parse revert rm shortlog show show-ref stash status switch symbolic-ref tag \
     version whatchanged",
    "-O -c -u -x --config --exec --ext-diff --open-files-in-pager --receive-pack --upload-pack",
);

/// Git subcommands that may run an argument. Any other subcommand may be an alias.
const GIT_RUNS: &str = "archive bisect bundle config credential difftool filter-branch for-each-ref \
    format-patch hash-object lfs maintenance mergetool rebase send-email sparse-checkout submodule \
    update-index update-ref var worktree write-tree";

/// Git's options before the subcommand that take no value.
pub(super) const GIT_FLAGS: &str =
    "--no-pager -P --paginate -p --bare --no-optional-locks --literal-pathspecs --version --help";
pub(super) const GIT_VALUES: &str = "-C --git-dir --work-tree --namespace";

pub(super) fn is_git_subcommand(name: &str) -> bool {
    GIT.has_subcommand(name) || has(GIT_RUNS, name)
}

/// Is this a git setting that names no program?
pub(super) fn is_harmless_setting(setting: &str) -> bool {
    const HARMLESS: &str = "color. user. advice. log. core.quotepath core.autocrlf \
        init.defaultbranch commit.gpgsign=false tag.gpgsign=false gc.auto diff.noprefix \
        safe.directory";
    let setting = setting.to_ascii_lowercase();
    HARMLESS.split(' ').any(|harmless| setting.starts_with(harmless))
}

/// A program that runs the command after its own options. An option outside of the table makes the
/// line unclear.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrapper {
    pub(super) name: &'static str,
    /// Options without a value.
    pub(super) flags: &'static str,
    /// Options with a value.
    pub(super) values: &'static str,
    /// How many operands come between the options and the command.
    pub(super) operands: usize,
}

const fn wrapper(
    name: &'static str,
    flags: &'static str,
    values: &'static str,
    operands: usize,
) -> Wrapper {
    Wrapper { name, flags, values, operands }
}

const WRAPPERS: &[Wrapper] = &[
    wrapper(
        "sudo",
        "-A -b -E -H -i -k -n -P -S -s --non-interactive",
        "-C -D -g -h -p -R -r -T -t -U -u --user --group",
        0,
    ),
    wrapper("doas", "-n -s", "-C -u", 0),
    wrapper("env", "-i -0 -v --ignore-environment --null", "-u -C --unset --chdir", 0),
    wrapper("command", "-p", "", 0),
    wrapper("exec", "-c -l", "-a", 0),
    wrapper("builtin", "", "", 0),
    wrapper("nohup", "", "", 0),
    wrapper("nice", "", "-n --adjustment", 0),
    wrapper("ionice", "-t --ignore", "-c -n --class --classdata", 0),
    wrapper("chrt", "-a -b -d -f -i -m -o -R -r -v", "-T -P -D", 1),
    wrapper("taskset", "-a -c -p --cpu-list", "", 1),
    wrapper("time", "-p -v -a -q --portability --verbose --append", "-f -o --format --output", 0),
    wrapper(
        "timeout",
        "-f -p -v --foreground --preserve-status --verbose",
        "-k -s --kill-after --signal",
        1,
    ),
    wrapper("stdbuf", "", "-i -o -e --input --output --error", 0),
    wrapper("setsid", "-c -f -w --ctty --fork --wait", "", 0),
    wrapper(
        "strace",
        "-c -C -d -f -F -h -i -k -n -q -r -t -T -v -w -x -y -Y -z -Z --follow-forks",
        "-a -b -e -I -o -O -P -s -S -u -U -X --trace --output",
        0,
    ),
    wrapper("ssh-agent", "-c -D -d -s", "-a -E -O -P -t", 0),
    wrapper("busybox", "", "", 0),
    wrapper("toybox", "", "", 0),
    wrapper(
        "flock",
        "-c -e -F -n -o -s -u -x --exclusive --nonblock --shared --verbose",
        "-w -E --timeout --wait",
        1,
    ),
    // Its arguments are shell code.
    wrapper(
        "watch",
        "-b -c -d -e -g -t -x --color --differences --no-title --errexit",
        "-n -q --interval",
        0,
    ),
    wrapper(
        "parallel",
        "-k -v -0 -X -m --bar --keep-order --null --progress --verbose",
        "-a -d -I -j -L -N -n -P -S --arg-file --colsep --delay --jobs --joblog --max-args --timeout --workdir",
        0,
    ),
    // Its input is appended to the command, or replaces a word of it.
    wrapper(
        "xargs",
        "-0 -o -p -r -t -x -i -l -e --null --no-run-if-empty --verbose --replace --exit --open-tty",
        "-a -d -E -I -J -L -n -P -R -S -s --arg-file --delimiter --max-args --max-lines --max-procs --max-chars",
        0,
    ),
];

/// Programs that run their arguments, with options unknown here.
const RUNNERS: &str = "at batch caffeinate chroot coproc crontab dbus-run-session fakeroot gfind gxargs \
    ltrace nocorrect noglob nsenter numactl prlimit repeat runuser rsh screen script setarch setpriv ssh \
    su systemd-inhibit systemd-run tmux unbuffer unshare valgrind xvfb-run";

const SHELLS: &str = "sh bash zsh dash ksh ash mksh yash rbash ksh93 posh hush";

/// Other shells, and builtins that change the meaning of words.
const OPAQUE: &str = "source . alias hash enable bind fish csh tcsh nu pwsh elvish";

const INTERPRETERS: &str = "python pypy perl ruby irb node nodejs deno bun php lua luajit tclsh wish \
    expect osascript Rscript guile racket julia groovy scala ghc elixir erl ts-node tsx";

/// Programs that read commands, some of which run other programs.
const EDITORS: &str = "ed ex vi vim nvim emacs gdb lldb sqlite psql mysql m4 ftp sftp";

/// Interpreter options that do not change which code runs.
pub(super) const INTERPRETER_FLAGS: &str = "-u -B -O -OO -I -s -S -q -b -w --test --watch --inspect \
    --no-warnings --enable-source-maps --experimental-strip-types --trace-warnings";

/// Do other programs run this variable's value?
pub(super) fn is_run_by_others(variable: &str) -> bool {
    const ENDS: &str = "COMMAND PAGER EDITOR VISUAL BROWSER SHELL ASKPASS WRAPPER RUNNER LESSOPEN PS4 \
        GIT_SSH PROXY_COMMAND EXTERNAL_DIFF LINKER";
    ENDS.split(' ').any(|end| variable.ends_with(end))
}

/// Does this variable name a file or setting that other programs run?
pub(super) fn is_file_of_code(variable: &str) -> bool {
    matches!(variable, "BASH_ENV" | "ENV" | "LD_PRELOAD" | "PERL5OPT" | "RUBYOPT" | "PYTHONSTARTUP")
        || variable.starts_with("GIT_CONFIG")
        || variable.starts_with("BASH_FUNC_")
}

/// Is it a real file, and not the program's stdin?
pub(super) fn is_file(path: &str) -> bool {
    let is_read =
        matches!(path, "" | "-") || path.starts_with("/dev/") || path.starts_with("/proc/");
    !is_read && !path.contains(is_unknown)
}

/// Is the word in this space-separated list?
pub(super) fn has(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|it| it == word)
}

/// How a program treats its arguments.
pub(super) fn kind(name: &str) -> Kind {
    // python3.12 counts as python.
    let unversioned = name.trim_end_matches(|it: char| it.is_ascii_digit() || it == '.');
    match name {
        "eval" => Kind::Eval,
        "trap" => Kind::Trap,
        "find" => Kind::Find,
        "git" => Kind::Git,
        "sed" | "gsed" => Kind::Sed,
        "awk" | "gawk" | "mawk" | "nawk" => Kind::Awk,
        "export" | "declare" | "typeset" | "local" | "readonly" => Kind::Sets,
        "test" | "[" | "[[" | "printf" | "read" | "unset" | "set" | "wait" => Kind::Names,
        _ if has(OPAQUE, name) => Kind::Opaque,
        _ if has(SHELLS, name) => Kind::Shell,
        _ if has(RUNNERS, name) => Kind::Runner,
        _ if has(EDITORS, unversioned) => Kind::Editor,
        _ if has(INTERPRETERS, unversioned) => Kind::Interpreter,
        _ => {
            let data = DATA.iter().find(|data| has(data.names, name)).map(Kind::Data);
            let wrapper = WRAPPERS.iter().find(|it| it.name == name).map(Kind::Wrapper);
            data.or(wrapper).unwrap_or(Kind::Unknown)
        }
    }
}
