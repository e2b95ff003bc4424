//! Claims about lists: each condition of a filter, alone and together.

use std::time::Duration;

use stepwell::model::{
    Change, Driver, Edited, Restored, Rewinding, Rewound, Scope, Source, StatusChanged,
};
use stepwell::store::query::{Family, Filter, InScope, Query, TrashScope};
use stepwell::store::{Create, Lease, Write};
use stepwell::{Created, Message, Seq, Status};

use crate::claims::claims;
use crate::harness::{created, id, say};
use crate::{Fixture, Harness};

claims! { $ filter = filter_claims for Fixture:
    without_conditions_everything_is_listed,
    a_status_lets_through_those_that_stand_so,
    several_statuses_let_through_any_of_them,
    an_agent_lets_through_its_sessions,
    a_model_lets_through_those_that_used_it_last,
    tags_must_all_be_there,
    a_tag_is_not_a_part_of_a_tag,
    a_label_lets_through_the_sessions_that_bear_it,
    a_task_text_is_found_whatever_its_case,
    a_task_text_is_found_whatever_its_case_beyond_ascii,
    a_task_text_is_no_pattern,
    a_workspace_lets_through_its_sessions_only,
    a_system_lets_through_those_that_came_from_it,
    a_scope_lets_through_those_that_belong_to_it_or_begin_so,
    a_driver_lets_through_those_that_it_moves_on,
    roots_are_those_that_no_agent_started,
    children_are_subagents_and_forks,
    since_and_until_are_about_the_last_event,
    rewinding_lets_through_those_whose_files_are_half_moved,
    a_prefix_lets_through_ids_that_begin_so,
    a_part_of_an_id_lets_through_ids_that_have_it,
    endings_let_through_ids_whose_last_part_begins_so,
    a_prefix_is_no_pattern,
    a_place_tells_the_trash_from_the_rest,
    every_condition_must_hold,
    a_listed_session_stands_as_it_stands_alone,
    hostile_values_are_harmless,
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn set<F: Fixture>(w: &Harness<F>, lease: &Lease, status: Status) {
    let change = StatusChanged { status, reason: None, error: None };
    w.add(lease, change);
}

fn tagged(tags: &[&str]) -> Edited {
    Edited { tag: names(tags).into_iter().collect(), ..Edited::default() }
}

fn three<F: Fixture>(w: &Harness<F>, describe: impl Fn(&str) -> Created) {
    for name in ["a", "b", "c"] {
        w.make(describe(name));
    }
}

fn a_system_lets_through_those_that_came_from_it<F: Fixture>(w: &mut Harness<F>) {
    three(w, |name| Created {
        source: (name != "c").then(|| Source {
            system: format!("system-{name}"),
            id: "1".to_owned(),
            started_at: None,
        }),
        ..created(name)
    });
    let of = |system: &str| Filter { system: Some(system.to_owned()), ..Filter::default() };
    assert_eq!(w.listed(of("system-b")), names(&["b"]));
    assert_eq!(w.listed(of("system")), names(&[]));
}

fn a_scope_lets_through_those_that_belong_to_it_or_begin_so<F: Fixture>(w: &mut Harness<F>) {
    let scopes = [("a", "adk/shop/ann"), ("b", "adk/shop/bob"), ("c", "adk/shöp")];
    for (name, scope) in scopes {
        w.make(created(name).in_scope(scope));
    }
    w.begin("d");
    let of = |scope| Filter { scope: Some(scope), ..Filter::default() };
    assert_eq!(w.listed(of(InScope::Is("adk/shop/bob".to_owned()))), names(&["b"]));
    assert_eq!(w.listed(of(InScope::Is("adk/shop".to_owned()))), names(&[]));
    assert_eq!(w.listed(of(InScope::StartsWith("adk/shop/".to_owned()))), names(&["a", "b"]));
    assert_eq!(w.listed(of(InScope::StartsWith(String::new()))), names(&["a", "b", "c"]));
    let info = w.store().info(&id("b")).unwrap();
    assert_eq!(info.head.scope.as_deref(), Some("adk/shop/bob"));
    let long = created("long").in_scope("x".repeat(stepwell::log::MAX_SCOPE_BYTES + 1));
    let long = Create { created: long, event_id: None, at: None, claim: None };
    let refused = w.store().write(Write::Create(long));
    assert!(matches!(refused, Err(stepwell::Error::TooLarge { .. })));
}

fn rewinding_lets_through_those_whose_files_are_half_moved<F: Fixture>(w: &mut Harness<F>) {
    let begun = Rewinding::Begun { to: Seq::FIRST, scope: Scope::Files, undoes: None, files: 0 };
    let (half, whole) = (w.begin("a"), w.begin("b"));
    w.begin("c");
    w.add(&half, begun.clone());
    let began = w.add(&whole, begun).last;
    let filter = || Filter { rewinding: true, ..Filter::default() };
    assert_eq!(w.listed(filter()), names(&["a", "b"]));
    w.add(&whole, Rewinding::Dropped { of: began, why: "x".to_owned() });
    assert_eq!(w.listed(filter()), names(&["a"]));
    let restored = Restored::default();
    w.add(&half, Rewound { to: Seq::FIRST, scope: Scope::Files, restored });
    assert!(w.listed(filter()).is_empty());
}

fn without_conditions_everything_is_listed<F: Fixture>(w: &mut Harness<F>) {
    assert!(w.listed(Filter::default()).is_empty());
    three(w, created);
    assert_eq!(w.listed(Filter::default()), names(&["a", "b", "c"]));
}

fn a_status_lets_through_those_that_stand_so<F: Fixture>(w: &mut Harness<F>) {
    for (n, status) in Status::ALL.into_iter().enumerate() {
        let lease = w.begin(&format!("s{n}"));
        set(w, &lease, status);
    }
    for (n, status) in Status::ALL.into_iter().enumerate() {
        let filter = Filter { status: vec![status], ..Filter::default() };
        assert_eq!(w.listed(filter), [format!("s{n}")], "{status}");
    }
}

fn several_statuses_let_through_any_of_them<F: Fixture>(w: &mut Harness<F>) {
    for (name, status) in [("a", Status::Failed), ("b", Status::Success), ("c", Status::Paused)] {
        let lease = w.begin(name);
        set(w, &lease, status);
    }
    let filter = Filter { status: vec![Status::Paused, Status::Failed], ..Filter::default() };
    assert_eq!(w.listed(filter), names(&["a", "c"]));
}

fn an_agent_lets_through_its_sessions<F: Fixture>(w: &mut Harness<F>) {
    three(w, |name| Created {
        agent: if name == "b" { "coder" } else { "tester" }.to_owned(),
        ..created(name)
    });
    let by = |agent: &str| Filter { agent: Some(agent.to_owned()), ..Filter::default() };
    assert_eq!(w.listed(by("tester")), names(&["a", "c"]));
    assert_eq!(w.listed(by("coder")), names(&["b"]));
    assert!(w.listed(by("test")).is_empty());
}

fn a_driver_lets_through_those_that_it_moves_on<F: Fixture>(w: &mut Harness<F>) {
    three(w, |name| match name {
        "b" => created(name).driven_externally(),
        _ => created(name),
    });
    let by = |driver| Filter { driver: Some(driver), ..Filter::default() };
    assert_eq!(w.listed(by(Driver::Own)), names(&["a", "c"]));
    assert_eq!(w.listed(by(Driver::External)), names(&["b"]));
}

fn a_model_lets_through_those_that_used_it_last<F: Fixture>(w: &mut Harness<F>) {
    three(w, |name| Created { model: "small".to_owned(), ..created(name) });
    let lease = w.store().acquire(&id("b"), &crate::harness::claim(1)).unwrap();
    let message = Message { model: Some("large".to_owned()), ..Message::assistant("x") };
    w.add(&lease, message);
    let by = |model: &str| Filter { model: Some(model.to_owned()), ..Filter::default() };
    assert_eq!(w.listed(by("small")), names(&["a", "c"]));
    assert_eq!(w.listed(by("large")), names(&["b"]));
}

fn tags_must_all_be_there<F: Fixture>(w: &mut Harness<F>) {
    three(w, created);
    w.edit("a", tagged(&["x", "y"]));
    w.edit("b", tagged(&["y"]));
    let with = |tags: &[&str]| Filter { tags: names(tags), ..Filter::default() };
    assert_eq!(w.listed(with(&["y"])), names(&["a", "b"]));
    assert_eq!(w.listed(with(&["y", "x"])), names(&["a"]));
    assert!(w.listed(with(&["x", "z"])).is_empty());
    let untag = Edited { untag: ["x".to_owned()].into(), ..Edited::default() };
    w.edit("a", untag);
    assert!(w.listed(with(&["x"])).is_empty());
}

fn a_tag_is_not_a_part_of_a_tag<F: Fixture>(w: &mut Harness<F>) {
    three(w, created);
    w.edit("a", tagged(&["nightly \"x\""]));
    let with = |tag: &str| Filter { tags: names(&[tag]), ..Filter::default() };
    for tag in ["night", "nightly", "nightly \"x", "%", "NIGHTLY \"X\""] {
        assert!(w.listed(with(tag)).is_empty(), "{tag}");
    }
    assert_eq!(w.listed(with("nightly \"x\"")), names(&["a"]));
}

fn a_label_lets_through_the_sessions_that_bear_it<F: Fixture>(w: &mut Harness<F>) {
    three(w, created);
    let label = |label| Edited { label, ..Edited::default() };
    w.edit("a", label(Change::Set("best".to_owned())));
    w.edit("c", label(Change::Set("best".to_owned())));
    let filter = Filter { label: Some("best".to_owned()), ..Filter::default() };
    assert_eq!(w.listed(filter.clone()), names(&["a", "c"]));
    w.edit("a", label(Change::Clear));
    assert_eq!(w.listed(filter), names(&["c"]));
}

fn by_task(text: &str) -> Filter {
    Filter { task: Some(text.to_owned()), ..Filter::default() }
}

fn a_task_text_is_found_whatever_its_case<F: Fixture>(w: &mut Harness<F>) {
    w.make(Created::new(id("a"), "Fix the Login page"));
    w.make(Created::new(id("b"), "write docs"));
    for text in ["login", "LOGIN", "the Log", "fix", "Fix the Login page", ""] {
        assert!(w.listed(by_task(text)).contains(&"a".to_owned()), "{text}");
    }
    assert_eq!(w.listed(by_task("login")), names(&["a"]));
    assert!(w.listed(by_task("logout")).is_empty());
}

fn a_task_text_is_found_whatever_its_case_beyond_ascii<F: Fixture>(w: &mut Harness<F>) {
    w.make(Created::new(id("a"), "Über die ÄRGERNISSE"));
    w.make(Created::new(id("b"), "исправить ОШИБКУ"));
    w.make(Created::new(id("c"), "修复登录页面"));
    assert_eq!(w.listed(by_task("über")), names(&["a"]));
    assert_eq!(w.listed(by_task("ärger")), names(&["a"]));
    assert_eq!(w.listed(by_task("Ошибку")), names(&["b"]));
    assert_eq!(w.listed(by_task("ИСПРАВИТЬ")), names(&["b"]));
    assert_eq!(w.listed(by_task("登录")), names(&["c"]));
}

fn a_task_text_is_no_pattern<F: Fixture>(w: &mut Harness<F>) {
    w.make(Created::new(id("a"), "reach 100% of 'it'"));
    w.make(Created::new(id("b"), "reach 100 of it"));
    assert_eq!(w.listed(by_task("100%")), names(&["a"]));
    assert_eq!(w.listed(by_task("'it'")), names(&["a"]));
    for text in ["r_ach", "r%h", ".*", "[r]each"] {
        assert!(w.listed(by_task(text)).is_empty(), "{text}");
    }
}

fn a_workspace_lets_through_its_sessions_only<F: Fixture>(w: &mut Harness<F>) {
    three(w, |name| Created { workspace: format!("/home/{name}"), ..created(name) });
    let at =
        |workspace: &str| Filter { workspace: Some(workspace.to_owned()), ..Filter::default() };
    assert_eq!(w.listed(at("/home/b")), names(&["b"]));
    assert!(w.listed(at("/home")).is_empty());
    assert!(w.listed(at("/home/b/")).is_empty());
}

fn family<F: Fixture>(w: &Harness<F>) {
    let lease = w.begin("root");
    w.add(&lease, say("x"));
    w.subagent("root", "child");
    w.subagent("child", "grandchild");
    w.fork("root", 1, "fork");
    w.fork("child", 1, "childs-fork");
    w.begin("other");
}

fn of_family(family: Family) -> Filter {
    Filter { family, ..Filter::default() }
}

fn roots_are_those_that_no_agent_started<F: Fixture>(w: &mut Harness<F>) {
    family(w);
    let expected = names(&["root", "fork", "childs-fork", "other"]);
    assert_eq!(w.listed(of_family(Family::Roots)), expected);
    assert_eq!(w.listed(of_family(Family::Any)).len(), 6);
}

fn children_are_subagents_and_forks<F: Fixture>(w: &mut Harness<F>) {
    family(w);
    let of = |name: &str| w.listed(of_family(Family::ChildrenOf(id(name))));
    assert_eq!(of("root"), names(&["child", "fork"]));
    assert_eq!(of("child"), names(&["grandchild", "childs-fork"]));
    assert!(of("other").is_empty());
    assert!(of("nobody").is_empty());
}

fn since_and_until_are_about_the_last_event<F: Fixture>(w: &mut Harness<F>) {
    let start = w.now();
    let mut leases = Vec::new();
    for name in ["a", "b", "c"] {
        leases.push(w.begin(name));
        w.tick();
    }
    w.add(&leases[0], say("a moves on")); // at 3 s
    let at = |seconds| start.plus(Duration::from_secs(seconds));
    let since = |seconds| w.listed(Filter { since: Some(at(seconds)), ..Filter::default() });
    let until = |seconds| w.listed(Filter { until: Some(at(seconds)), ..Filter::default() });
    assert_eq!(since(2), names(&["a", "c"]));
    assert_eq!(since(3), names(&["a"]));
    assert!(since(4).is_empty());
    assert!(until(1).is_empty());
    assert_eq!(until(2), names(&["b"]));
    assert_eq!(until(4), names(&["a", "b", "c"]));
    let between = Filter { since: Some(at(2)), until: Some(at(3)), ..Filter::default() };
    assert_eq!(w.listed(between), names(&["c"]));
}

fn by_prefix(prefix: &str) -> Filter {
    Filter { prefix: Some(prefix.to_owned()), ..Filter::default() }
}

fn a_prefix_lets_through_ids_that_begin_so<F: Fixture>(w: &mut Harness<F>) {
    for name in ["20260101-a", "20260102-a", "20260102-b", "x"] {
        w.make(created(name));
    }
    assert_eq!(w.listed(by_prefix("2026")).len(), 3);
    let second = names(&["20260102-a", "20260102-b"]);
    assert_eq!(w.listed(by_prefix("20260102")), second);
    assert_eq!(w.listed(by_prefix("20260102-b")), names(&["20260102-b"]));
    assert!(w.listed(by_prefix("20260102-bb")).is_empty());
    assert_eq!(w.listed(by_prefix("")).len(), 4);
}

fn a_part_of_an_id_lets_through_ids_that_have_it<F: Fixture>(w: &mut Harness<F>) {
    for name in ["20260101-120000-a1b2c3", "20260102-120000-a1ffff", "x.y_z", "a1"] {
        w.make(created(name));
    }
    let part = |part: &str| Filter { part: Some(part.to_owned()), ..Filter::default() };
    assert_eq!(w.listed(part("0-a1")).len(), 2);
    assert_eq!(w.listed(part("b2c3")), names(&["20260101-120000-a1b2c3"]));
    assert_eq!(w.listed(part("y_z")), names(&["x.y_z"]));
    // Every character in a text filter is literal.
    assert!(w.listed(part("x_y")).is_empty() && w.listed(part("%")).is_empty());
    assert!(w.listed(part("A1")).is_empty() && w.listed(part("a\0")).is_empty());
}

fn endings_let_through_ids_whose_last_part_begins_so<F: Fixture>(w: &mut Harness<F>) {
    for name in ["20260101-120000-a1b2c3", "20260102-120000-b1ffff", "a1-x", "a1"] {
        w.make(created(name));
    }
    let ending = |of: &[&str]| {
        let endings = of.iter().map(|&it| it.to_owned()).collect();
        Filter { endings, ..Filter::default() }
    };
    assert_eq!(w.listed(ending(&["a1"])), names(&["20260101-120000-a1b2c3", "a1"]));
    assert_eq!(w.listed(ending(&["b1ff", "x"])), names(&["20260102-120000-b1ffff", "a1-x"]));
    assert!(w.listed(ending(&["2026"])).is_empty() && w.listed(ending(&["b2c3"])).is_empty());
    assert_eq!(w.listed(ending(&[])).len(), 4);
}

fn a_prefix_is_no_pattern<F: Fixture>(w: &mut Harness<F>) {
    for name in ["a_b", "axb", "A_b"] {
        w.make(created(name));
    }
    assert_eq!(w.listed(by_prefix("a_")), names(&["a_b"]));
    assert!(w.listed(by_prefix("%")).is_empty());
    assert_eq!(w.listed(by_prefix("A")), names(&["A_b"]));
}

fn a_place_tells_the_trash_from_the_rest<F: Fixture>(w: &mut Harness<F>) {
    three(w, created);
    w.store().maintain().trash(&[id("b").into()]).unwrap();
    let at = |place| w.listed(Filter { place, ..Filter::default() });
    assert_eq!(at(TrashScope::Kept), names(&["a", "c"]));
    assert_eq!(at(TrashScope::Trash), names(&["b"]));
    assert_eq!(at(TrashScope::Anywhere), names(&["a", "b", "c"]));
}

fn every_condition_must_hold<F: Fixture>(w: &mut Harness<F>) {
    three(w, |name| Created {
        agent: "coder".to_owned(),
        workspace: if name == "c" { "/y" } else { "/x" }.to_owned(),
        ..created(name)
    });
    w.edit("b", tagged(&["t"]));
    w.edit("c", tagged(&["t"]));
    let filter = Filter {
        agent: Some("coder".to_owned()),
        workspace: Some("/x".to_owned()),
        tags: names(&["t"]),
        status: vec![Status::Interrupted],
        task: Some("TASK OF".to_owned()),
        ..Filter::default()
    };
    assert_eq!(w.listed(filter.clone()), names(&["b"]));
    let other = Filter { status: vec![Status::Running], ..filter };
    assert!(w.listed(other).is_empty());
}

fn a_listed_session_stands_as_it_stands_alone<F: Fixture>(w: &mut Harness<F>) {
    family(w);
    w.make(created("idle"));
    w.edit("root", tagged(&["t"]));
    let page = w.store().list(&Query::default()).unwrap();
    assert_eq!(page.sessions.len(), 7);
    for info in page.sessions {
        assert_eq!(w.store().info(&info.head.id).unwrap(), info);
    }
}

fn hostile_values_are_harmless<F: Fixture>(w: &mut Harness<F>) {
    three(w, created);
    for text in ["'", "\"", "' OR 1=1 --", "a'; DROP TABLE sessions", "\u{0}", "%_*?"] {
        let text = text.to_owned();
        let filters = [
            Filter { agent: Some(text.clone()), ..Filter::default() },
            Filter { tags: vec![text.clone()], ..Filter::default() },
            Filter { label: Some(text.clone()), ..Filter::default() },
            by_task(&text),
            by_prefix(&text),
        ];
        for filter in filters {
            assert!(w.listed(filter.clone()).is_empty(), "{filter:?}");
        }
    }
    assert_eq!(w.listed(Filter::default()).len(), 3);
}
