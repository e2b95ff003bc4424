//! What a user never allows, against the command lines that hide it.

use stepwell::{Message, Permission};

use super::tests::{Told, rules};
use super::{Move, Settled};
use crate::permission::Mode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Denied,
    Ask,
    Allowed,
}

use Expected::{Allowed, Ask, Denied};

/// Command lines, what a user never allows, and what becomes of the call in a run with `--mode yolo`.
const ROWS: &[(&str, &str, Expected)] = &[
    // The command itself, wherever it stands in the line.
    ("rm x", "rm*", Denied),
    ("  rm   -rf   x", "rm -rf*", Denied),
    ("/bin/rm x", "rm*", Denied),
    ("\\rm x", "rm*", Denied),
    ("r\\m x", "rm*", Denied),
    ("r''m x", "rm*", Denied),
    ("\"rm\" x > y", "rm*", Denied),
    ("r\\\nm x", "rm*", Denied),
    ("rm${IFS}-rf${IFS}x", "rm*", Denied),
    ("true; rm x", "rm*", Denied),
    ("true && rm x", "rm*", Denied),
    ("false || rm x", "rm*", Denied),
    ("sleep 1 & rm x", "rm*", Denied),
    ("true &> out rm x", "rm*", Denied),
    ("ls | rm x", "rm*", Denied),
    ("cd a\nrm x", "rm*", Denied),
    ("echo a # b\nrm x", "rm*", Denied),
    ("> out rm x", "rm*", Denied),
    ("2>/dev/null rm x", "rm*", Denied),
    ("FORCE=1 rm x", "rm*", Denied),
    // Compound commands.
    ("(rm x)", "rm*", Denied),
    ("{ rm x; }", "rm*", Denied),
    ("! rm x", "rm*", Denied),
    ("if true; then rm x; fi", "rm*", Denied),
    ("if rm x; then true; fi", "rm*", Denied),
    ("for i in a b; do rm $i; done", "rm*", Denied),
    ("for i do rm $i; done", "rm*", Denied),
    ("while read f; do rm \"$f\"; done < list", "rm*", Denied),
    ("case $1 in a) rm x;; *) true;; esac", "rm*", Denied),
    ("case a in (a|b) true;; c) true; esac; rm x", "rm*", Denied),
    ("echo $(case a in a) rm x;; esac)", "rm*", Denied),
    ("f() { rm \"$@\"; }; f x", "rm*", Denied),
    ("function f { rm x; }\nf", "rm*", Denied),
    // Substitutions.
    ("echo $(rm x)", "rm*", Denied),
    ("echo \"a $(rm x) b\"", "rm*", Denied),
    ("echo `rm x`", "rm*", Denied),
    ("echo `echo \\`rm x\\``", "rm*", Denied),
    ("diff <(rm x) y", "rm*", Denied),
    ("tee >(rm x)", "rm*", Denied),
    ("echo ${X:-$(rm x)}", "rm*", Denied),
    ("echo $((1 + $(rm x)))", "rm*", Denied),
    ("cat <<END\n$(rm x)\nEND", "rm*", Denied),
    // Programs that run their arguments.
    ("sudo rm x", "rm*", Denied),
    ("FORCE=1 sudo -n -u root A=b rm x", "rm*", Denied),
    ("doas -u root rm x", "rm*", Denied),
    ("env rm x", "rm*", Denied),
    ("env -i -u HOME A=b rm x", "rm*", Denied),
    ("env -S 'rm -r' x", "rm*", Denied),
    ("env --split-string='A=b rm x'", "rm*", Denied),
    ("/usr/bin/env A=b rm x", "rm*", Denied),
    ("timeout 5 rm x", "rm*", Denied),
    ("timeout -k 1 -s KILL 5 rm x", "rm*", Denied),
    ("timeout --signal=KILL 5 rm x", "rm*", Denied),
    ("nice rm x", "rm*", Denied),
    ("nice -n 19 rm x", "rm*", Denied),
    ("nohup rm x &", "rm*", Denied),
    ("stdbuf -oL -e 0 rm x", "rm*", Denied),
    ("setsid -f rm x", "rm*", Denied),
    ("ionice -c 3 rm x", "rm*", Denied),
    ("chrt -i 0 rm x", "rm*", Denied),
    ("taskset 0x1 rm x", "rm*", Denied),
    ("taskset -c 0 rm x", "rm*", Denied),
    ("time -p rm x", "rm*", Denied),
    ("time (rm x)", "rm*", Denied),
    ("strace -f -o log rm x", "rm*", Denied),
    ("ssh-agent rm x", "rm*", Denied),
    ("command -p rm x", "rm*", Denied),
    ("exec -a other rm x", "rm*", Denied),
    ("builtin command rm x", "rm*", Denied),
    ("busybox rm x", "rm*", Denied),
    ("sudo timeout 5 nice env A=b rm x", "rm*", Denied),
    ("ls | xargs rm", "rm*", Denied),
    ("ls | xargs -0 -n 1 rm -f", "rm*", Denied),
    ("ls | xargs -I{} sh -c 'rm {}'", "rm*", Denied),
    ("find . -name x -exec rm {} +", "rm*", Denied),
    ("find . -execdir rm {} \\;", "rm*", Denied),
    ("find . -ok rm {} \\; -print", "rm*", Denied),
    ("find . -exec sh -c 'rm \"$1\"' _ {} \\;", "rm*", Denied),
    ("parallel -j 4 rm ::: a b", "rm*", Denied),
    ("parallel ::: 'rm a' 'rm b'", "rm*", Denied),
    ("watch -n 5 rm x", "rm*", Denied),
    ("watch 'ls; rm x'", "rm*", Denied),
    // Texts that are code.
    ("sh -c 'rm x'", "rm*", Denied),
    ("bash -lc 'rm x'", "rm*", Denied),
    ("bash -euo pipefail -c 'rm x'", "rm*", Denied),
    ("zsh -c \"rm x\"", "rm*", Denied),
    ("bash -c \"bash -c 'rm x'\"", "rm*", Denied),
    ("eval rm x", "rm*", Denied),
    ("eval 'rm' x", "rm*", Denied),
    ("trap 'rm x' EXIT", "rm*", Denied),
    ("sh <<END\nrm x\nEND", "rm*", Denied),
    ("bash <<-'END'\n\trm x\n\tEND", "rm*", Denied),
    ("bash <<< 'rm x'", "rm*", Denied),
    ("git -C . push origin", "git push*", Denied),
    ("git --no-pager push", "git push*", Denied),
    ("flock lock -c 'rm x'", "rm*", Denied),
    // What is not understood.
    ("X=rm; $X x", "rm*", Ask),
    ("\"$X\" x", "rm*", Ask),
    ("{rm,x}", "rm*", Ask),
    ("/bin/r? x", "rm*", Ask),
    ("/bin/r[m] x", "rm*", Ask),
    ("$(echo rm) x", "rm*", Ask),
    ("$'\\x72m' x", "rm*", Ask),
    ("git $X", "git push*", Ask),
    ("env $X", "rm*", Ask),
    ("timeout $X", "rm*", Ask),
    ("ls | xargs sh -c", "rm*", Ask),
    ("sh -c \"$X\"", "rm*", Ask),
    ("sh -c \"ls $X\"", "rm*", Ask),
    ("eval \"$X\"", "rm*", Ask),
    ("echo rm x | sh", "rm*", Ask),
    ("sh < script", "rm*", Ask),
    ("sh clean.sh", "rm*", Ask),
    (". ./clean.sh", "rm*", Ask),
    ("alias ls='rm x'\nls", "rm*", Ask),
    ("PAGER='rm x' man ls", "rm*", Ask),
    ("git -c alias.x='!rm y' x", "rm*", Ask),
    ("git bisect run rm x", "rm*", Ask),
    ("git submodule foreach 'rm x'", "rm*", Ask),
    ("git rebase -x 'rm x' main", "rm*", Ask),
    ("perl -e 'system(\"rm x\")'", "rm*", Ask),
    ("python3 -c 'import os; os.system(\"rm x\")'", "rm*", Ask),
    ("python3.12 <<< 'import os'", "rm*", Ask),
    ("node -e 'x'", "rm*", Ask),
    ("deno eval 'x'", "rm*", Ask),
    ("awk 'BEGIN { system(\"rm x\") }'", "rm*", Ask),
    ("vim -c '!rm x' y", "rm*", Ask),
    ("ssh host rm x", "rm*", Ask),
    ("su -c 'rm x' ann", "rm*", Ask),
    ("tar --to-command='rm x' -xf a.tar", "rm*", Ask),
    ("mystery --flag rm x", "rm*", Ask),
    ("mystery bash -c \"$X\"", "rm*", Ask),
    ("echo 'rm x", "rm*", Ask),
    ("cat <<END\nrm x", "rm*", Ask),
    ("((x<<2))\nrm x\n2", "rm*", Ask),
    // What runs nothing that is forbidden.
    ("ls -l", "rm*", Allowed),
    ("echo rm x", "rm*", Allowed),
    ("echo 'a; rm x'", "rm*", Allowed),
    ("echo \"$HOME\"", "rm*", Allowed),
    ("ls *.rs", "rm*", Allowed),
    ("grep -r 'rm -rf' src | head -5", "rm*", Allowed),
    ("cat <<'END'\nrm x\nEND", "rm*", Allowed),
    ("true # rm x", "rm*", Allowed),
    ("command -v rm", "rm*", Allowed),
    ("git rm x", "rm*", Allowed),
    ("git commit -m 'rm the old file'", "rm*", Allowed),
    ("git -C sub -c color.ui=never log", "git push*", Allowed),
    ("cargo test 2>&1 | tail -5", "rm*", Allowed),
    ("cargo test -p a -- --nocapture \"$X\"", "rm*", Allowed),
    ("X=$(date +%s); echo $((X + 1))", "rm*", Allowed),
    ("if [ -f x ]; then cat x; fi", "rm*", Allowed),
    ("for f in *.c; do cc -c \"$f\"; done", "rm*", Allowed),
    ("timeout 60 cargo test", "rm*", Allowed),
    ("find . -name '*.rs' -exec wc -l {} +", "rm*", Allowed),
    ("ls | xargs -n 1 basename", "rm*", Allowed),
    ("bash -c 'ls; pwd'", "rm*", Allowed),
    ("python3 build.py", "rm*", Allowed),
    ("awk '{ print $1 }' x", "rm*", Allowed),
    ("\"$DIR/build\" all", "rm*", Allowed),
];

#[test]
fn a_never_rule_sees_through_what_runs_its_arguments_and_asks_where_it_cannot() {
    let mut wrong = Vec::new();
    for (command, pattern, expected) in ROWS {
        let arguments = serde_json::json!({ "command": command }).to_string();
        let asks = Message::assistant("hm").calling("a", "run", arguments);
        let told = Told::new().then(Message::user("go")).then(asks);
        let told = told.then(Permission::new(format!("run({pattern})"), false));
        let became = match told.next(&rules(Mode::Yolo)) {
            Move::Settle(_, Settled::Denied(_)) => Denied,
            Move::Ask(_) => Ask,
            Move::RunTool(_) => Allowed,
            other => panic!("{command}: {other:?}"),
        };
        if became != *expected {
            wrong.push(format!("{command:?} under {pattern}: {became:?}, not {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), ROWS.len(), wrong.join("\n"));
}
