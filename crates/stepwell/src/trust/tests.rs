use super::*;

/// A growing log, with the notes of one user of this machine.
#[derive(Default)]
struct Log {
    events: Vec<Recorded>,
    given: Given,
}

fn who(name: &str, login: Option<&str>) -> Who {
    Who { login: login.map(ToOwned::to_owned), ..Who::from(name) }
}

impl Log {
    fn add(&mut self, event: impl Into<Event>) -> Seq {
        let seq = Seq::new(self.events.len() as u64 + 1);
        let (at, event) = (Time::EPOCH, event.into());
        self.events.push(Recorded { seq, at, id: None, event });
        seq
    }

    /// Adds an event that the user gives here.
    fn give(&mut self, event: impl Into<Event>) -> Seq {
        let event = event.into();
        let seq = self.add(event.clone());
        self.given.add(Note::on(seq, &event).unwrap());
        seq
    }

    fn judge(&self, login: Option<&str>) -> Judge {
        let (me, answers) = (who("ann@laptop", login), AnswersFrom::Own);
        Judge { me, given: self.given.clone(), answers }
    }

    fn weigh(&self) -> Weighed {
        self.judge(None).weigh(&self.events)
    }
}

fn mode(mode: Mode, by: &Who) -> Settings {
    Settings { mode: Some(mode), who: by.clone(), ..Settings::default() }
}

fn model(name: &str, by: &Who) -> Settings {
    Settings { model: Some(name.to_owned()), who: by.clone(), ..Settings::default() }
}

fn ask(id: &str) -> Gate {
    Gate {
        id: id.to_owned(),
        prompt: "?".to_owned(),
        default: None,
        deadline: None,
        asker: None,
        call: None,
    }
}

fn always(rule: &str, allow: bool, by: &Who) -> Permission {
    Permission { rule: rule.to_owned(), allow, who: Some(by.clone()) }
}

#[test]
fn a_mode_counts_from_the_user_alone_unless_it_is_stricter() {
    let (ann, bob) = (who("ann@laptop", None), who("bob@desk", None));
    let mut log = Log::default();
    log.give(mode(Mode::ConfirmSensitive, &ann));
    log.add(mode(Mode::Yolo, &bob));
    let weighed = log.weigh();
    assert_eq!(weighed.mode(Mode::Yolo, None), Mode::ConfirmSensitive);
    let refused = weighed.refused(Mode::ConfirmSensitive, "");
    assert_eq!(
        (refused[0].who.clone(), &refused[0].what),
        (bob.clone(), &Allowed::Mode(Mode::Yolo))
    );
    log.add(mode(Mode::ConfirmAll, &bob));
    assert_eq!(log.weigh().mode(Mode::Yolo, None), Mode::ConfirmAll);
    // The user's later choice counts again.
    log.give(mode(Mode::Yolo, &ann));
    assert_eq!(log.weigh().mode(Mode::ConfirmAll, None), Mode::Yolo);
    assert_eq!(log.weigh().refused(Mode::Yolo, ""), []);
}

#[test]
fn a_name_in_an_event_proves_nothing() {
    let mut log = Log::default();
    let ann = who("ann@laptop", None);
    log.give(mode(Mode::ConfirmSensitive, &ann));
    log.add(mode(Mode::Yolo, &ann));
    log.add(always("run_command", true, &ann));
    let weighed = log.weigh();
    assert_eq!(weighed.mode(Mode::ConfirmSensitive, None), Mode::ConfirmSensitive);
    assert_eq!(weighed.ignored, [Seq::new(3)].into());
}

#[test]
fn a_note_covers_one_event_with_its_exact_body() {
    let ann = who("ann@laptop", None);
    let mut log = Log::default();
    log.give(mode(Mode::ConfirmAll, &ann));
    log.events[0].event = mode(Mode::Yolo, &ann).into();
    let weighed = log.weigh();
    assert!(weighed.altered);
    assert_eq!(weighed.mode(Mode::ConfirmSensitive, None), Mode::ConfirmSensitive);
    // A log that was cut back to an earlier grant of the user grants nothing, either.
    let mut log = Log::default();
    log.give(mode(Mode::Yolo, &ann));
    log.give(mode(Mode::ConfirmAll, &ann));
    log.events.pop();
    let weighed = log.weigh();
    assert!(weighed.altered);
    assert_eq!(weighed.mode(Mode::ConfirmSensitive, None), Mode::ConfirmSensitive);
}

#[test]
fn a_servers_login_vouches_for_its_user_on_every_machine() {
    let mut log = Log::default();
    log.add(mode(Mode::Yolo, &who("ann@server", Some("ann_role"))));
    let mine = |login| log.judge(login).weigh(&log.events).mode(Mode::ConfirmSensitive, None);
    assert_eq!(mine(Some("ann_role")), Mode::Yolo);
    assert_eq!(mine(Some("bob_role")), Mode::ConfirmSensitive);
    assert_eq!(mine(None), Mode::ConfirmSensitive);
    // Two people can share a login, and a copy has none.
    for other in [who("bob@desk", Some("ann_role")), who("ann@laptop", None)] {
        let mut log = Log::default();
        log.add(mode(Mode::Yolo, &other));
        let weighed = log.judge(Some("ann_role")).weigh(&log.events);
        assert_eq!(weighed.mode(Mode::ConfirmSensitive, None), Mode::ConfirmSensitive, "{other}");
    }
}

#[test]
fn without_settings_the_stricter_of_metadata_and_usual_counts() {
    let weighed = Log::default().weigh();
    let before = |before| weighed.mode(Mode::ConfirmSensitive, before);
    assert_eq!(before(Some(Mode::Yolo)), Mode::ConfirmSensitive);
    assert_eq!(before(Some(Mode::ConfirmAll)), Mode::ConfirmAll);
    assert_eq!(before(None), Mode::ConfirmSensitive);
}

#[test]
fn a_model_counts_from_the_user_alone() {
    let (ann, bob) = (who("ann@laptop", None), who("bob@desk", None));
    let mut log = Log::default();
    log.give(model("acme/large", &ann));
    log.add(model("script:evil.json", &bob));
    let weighed = log.weigh();
    assert_eq!(weighed.mine.model.as_deref(), Some("acme/large"));
    assert_eq!(weighed.theirs.model.as_deref(), Some("script:evil.json"));
    let refused = weighed.refused(Mode::Yolo, "acme/large");
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].what, Allowed::Model("script:evil.json".to_owned()));
}

#[test]
fn approvals_of_others_are_asked_again_and_denials_stand() {
    let (ann, bob) = (who("ann@laptop", None), who("bob@desk", None));
    let mut log = Log::default();
    let asked = log.add(ask("c1"));
    let answered = log.add(GateAnswered::new("c1", Answer::ALLOW_ONCE, bob.clone()));
    let weighed = log.weigh();
    assert_eq!(weighed.ignored, [asked, answered].into());
    assert_eq!(weighed.disregarded[0].who, bob);
    log.add(ask("c1"));
    log.give(GateAnswered::new("c1", Answer::ALLOW_ONCE, ann));
    log.add(ask("c2"));
    log.add(GateAnswered::new("c2", Answer::deny("no"), bob.clone()));
    log.add(ask("c3"));
    log.add(GateAnswered::new("c3", Answer::from("deny: no"), bob.clone()));
    assert_eq!(log.weigh().ignored, [asked, answered].into());
    // An answer in free text to a flow's question is more than a denial.
    let asked = log.add(ask("step/0"));
    let answered = log.add(GateAnswered::new("step/0", Answer::from("no, deploy it"), bob));
    assert!(log.weigh().ignored.is_superset(&[asked, answered].into()));
}

#[test]
fn answers_of_others_count_if_the_user_chose_so_and_their_always_means_once() {
    let always_yes = Answer::Allow { scope: Grant::Always };
    let bob = who("bob@desk", Some("bob_role"));
    let mut log = Log::default();
    log.add(ask("c1"));
    let answered = log.add(GateAnswered::new("c1", always_yes.clone(), bob.clone()));
    let judge = |login| Judge { answers: AnswersFrom::Store, ..log.judge(login) };
    let weighed = judge(Some("ann_role")).weigh(&log.events);
    assert_eq!((weighed.ignored.len(), &weighed.once), (0, &[answered].into()));
    let counted = judge(None).answer(&log.events[1]);
    assert_eq!(counted, Some(Counted::As(Answer::ALLOW_ONCE)));
    // Modes, models and "always" stay the user's own, and a copied answer has no author.
    log.add(mode(Mode::Yolo, &bob));
    log.add(always("run_command", true, &bob));
    log.add(ask("c2"));
    log.add(GateAnswered::new("c2", always_yes, who("bob@desk", None)));
    let judge = Judge { answers: AnswersFrom::Store, ..log.judge(Some("ann_role")) };
    let weighed = judge.weigh(&log.events);
    assert_eq!(weighed.mode(Mode::ConfirmAll, None), Mode::ConfirmAll);
    assert_eq!(weighed.ignored, [4, 5, 6].map(Seq::new).into());
}

#[test]
fn a_fork_inherits_later_restrictions_and_no_grants() {
    let ann = who("ann@laptop", None);
    let mut log = Log::default();
    log.give(mode(Mode::Yolo, &ann));
    let at = log.give(always("run_command", true, &ann));
    log.give(always("run_command", false, &ann));
    log.give(always("write_file", true, &ann));
    log.give(mode(Mode::ConfirmAll, &ann));
    let carried = carried_over(&log.events, at);
    let mut fork = Log { given: Given::default(), events: log.events[..2].to_vec() };
    for (seq, event) in (1..).zip(&fork.events) {
        fork.given.add(Note::on(Seq::new(seq), &event.event).unwrap());
    }
    for new in carried {
        assert!(new.copied);
        fork.add(new.event);
    }
    let weighed = fork.weigh();
    assert_eq!(weighed.mode(Mode::Yolo, None), Mode::ConfirmAll);
    let rules = fork.events.iter().filter_map(|event| match &event.event {
        Event::Permission(it) => Some((it.rule.as_str(), it.allow)),
        _ => None,
    });
    assert_eq!(rules.collect::<Vec<_>>(), [("run_command", true), ("run_command", false)]);
    // It limits the fork, without being its user's choice.
    assert_eq!(weighed.mine.mode, Some(Mode::Yolo));
}

#[test]
fn a_budget_counts_from_the_user_alone_unless_it_is_less() {
    let (ann, bob) = (who("ann@laptop", None), who("bob@desk", None));
    let dollars = |n: u64| Some(n.to_string().parse::<Money>().unwrap());
    let budget =
        |n, by: &Who| Settings { budget: dollars(n), who: by.clone(), ..mode(Mode::Yolo, by) };
    let mut log = Log::default();
    assert_eq!(log.weigh().budget(None), None);
    assert_eq!(log.weigh().budget(dollars(9)), dollars(9), "no other budget is set");
    log.give(budget(5, &ann));
    log.add(budget(100, &bob));
    // Independent of the session's attributes, which anyone can change.
    for recorded in [None, dollars(5), dollars(100)] {
        assert_eq!(log.weigh().budget(recorded), dollars(5));
    }
    assert_eq!(log.weigh().budget(dollars(2)), dollars(2));
    log.give(budget(20, &ann));
    assert_eq!(log.weigh().budget(dollars(20)), dollars(20));
}

#[test]
fn messages_count_from_the_users_login_or_from_everyone_in_the_store() {
    let said = |by: Who| {
        let (text, lane) = ("x".to_owned(), crate::model::Lane::main());
        let event = crate::model::Said { text, lane, who: by, now: false }.into();
        Recorded { seq: Seq::FIRST, at: Time::EPOCH, id: None, event }
    };
    let on_server = Log::default().judge(Some("team_ann"));
    let hears = |judge: &Judge, name: &str, login| judge.hears(&said(who(name, login))).is_none();
    assert!(hears(&on_server, "ann@desk", Some("team_ann")));
    for (name, login) in
        [("ann@laptop", Some("team_bob")), ("bob@desk", Some("team_ann")), ("ann@laptop", None)]
    {
        assert!(!hears(&on_server, name, login), "{name} {login:?}");
    }
    let everyones = Judge { answers: AnswersFrom::Store, ..on_server };
    assert!(hears(&everyones, "bob@desk", Some("team_bob")));
    assert!(!hears(&everyones, "ann@laptop", None), "a copied message has no author");
    assert!(hears(&Log::default().judge(None), "bob@desk", None), "a folder");
}

#[test]
fn an_event_belongs_to_the_last_run_started_before_it() {
    let (ann, bob) = (who("ann@laptop", None), who("bob@desk", None));
    let mut log = Log::default();
    log.give(mode(Mode::Yolo, &ann));
    log.add(mode(Mode::Yolo, &bob));
    log.give(mode(Mode::Yolo, &ann));
    let runs = log.weigh().runs;
    let places: Vec<Seq> = log.events.iter().map(|event| event.seq).collect();
    assert_eq!((runs.others(places[0]), runs.others(places[2])), (None, None));
    assert_eq!(runs.others(places[1]), Some(&bob));
    assert_eq!(runs.others(Seq::ZERO), None, "no run has started");
    assert!(runs.is_since_own(places[1]) && !runs.is_since_own(Seq::ZERO));
}

#[test]
fn no_permission_from_before_a_revocation_counts() {
    let login = Some("ann_role");
    let (ann, always_yes) = (who("ann@laptop", login), Answer::Allow { scope: Grant::Always });
    let mut log = Log::default();
    let agent = Some("wild".to_owned());
    log.give(Settings { agent, model: Some("acme/large".to_owned()), ..mode(Mode::Yolo, &ann) });
    let allowed = log.give(always("write_file", true, &ann));
    let denied = log.give(always("run_command", false, &ann));
    let asked = log.add(ask("c1"));
    let answered = log.give(GateAnswered::new("c1", always_yes, ann.clone()));
    log.add(revocation(Who::from("an agent")).event);
    // Neither this machine's notes, nor the login that signed it, nor the store's answers bring it
    // back.
    for judge in [log.judge(None), log.judge(login)] {
        for answers in [AnswersFrom::Own, AnswersFrom::Store] {
            let weighed = Judge { answers, ..judge.clone() }.weigh(&log.events);
            assert_eq!(weighed.mode(Mode::ConfirmSensitive, None), Mode::ConfirmSensitive);
            assert_eq!(weighed.ignored, [allowed, asked, answered].into());
            assert!(!weighed.ignored.contains(&denied));
            // The model is the user's own choice; an agent could bring a mode.
            assert_eq!(weighed.mine.model.as_deref(), Some("acme/large"));
            assert_eq!((weighed.mine.agent, weighed.theirs.agent.as_deref()), (None, Some("wild")));
        }
    }
    // What was stricter stays, and later grants count.
    let mut strict = Log::default();
    strict.give(mode(Mode::ConfirmAll, &ann));
    strict.add(revocation(Who::from("an agent")).event);
    assert_eq!(strict.weigh().mode(Mode::Yolo, None), Mode::ConfirmAll);
    log.give(mode(Mode::Yolo, &ann));
    let again = log.give(always("write_file", true, &ann));
    let weighed = log.weigh();
    assert_eq!(weighed.mode(Mode::ConfirmAll, None), Mode::Yolo);
    assert!(!weighed.ignored.contains(&again));
}

#[test]
fn a_fork_from_before_a_revocation_inherits_it() {
    let ann = who("ann@laptop", None);
    let mut log = Log::default();
    let at = log.give(mode(Mode::Yolo, &ann));
    log.add(revocation(Who::from("an agent")).event);
    let carried = carried_over(&log.events, at);
    assert!(carried.iter().any(|new| new.copied && is_revocation(&new.event)), "{carried:?}");
    assert_eq!(carried_over(&log.events, Seq::new(2)).len(), 0);
}

#[test]
fn an_announced_event_counts_if_it_lands_soon_after() {
    let event: Event = GateAnswered::new("g", Answer::ALLOW_ONCE, Who::from("ann@desk")).into();
    let note = Note::on(Seq::new(7), &event).unwrap();
    let at = |seq| Recorded {
        seq: Seq::new(seq),
        at: Time::from_micros(0),
        id: None,
        event: event.clone(),
    };
    let mut given = Given::default();
    given.announce(Seq::new(6), note.digest);
    // Others may have written in between.
    assert!(given.has(&at(7)) && given.has(&at(9)));
    assert!(!given.has(&at(6)) && !given.has(&at(100)));
    // With its seq noted, it counts nowhere else.
    given.add(note);
    assert!(given.has(&at(7)) && !given.has(&at(9)));
}
