//! Random events of every kind, for property tests.

use std::collections::BTreeMap;

use proptest::prelude::*;
use stepwell::model::{
    About, Answer, Artifact, Author, Change, Checkpoint, CheckpointReason, Compacted, Digest,
    Driver, Edited, Effect, Elsewhere, Erased, Facts, Failure, Fate, FileChanged, FileState, Flow,
    Foreign, Gate, GateAnswered, Grant, Image, Isolation, Mark, Mode, Money, Node, NodeState,
    Opaque, Origin, Outcome, Part, Permission, Phase, PhaseChanged, PhaseSet, Project, Provenance,
    Question, Record, Restored, Rewinding, Rewound, Role, Said, Scope, Scrubbed, Settings, Source,
    StatusChanged, Step, StopAsked, Subagent, Task, TaskStatus, Text, Time, ToolCall, ToolFinished,
    ToolResult, ToolStarted, Undone, Unknown, Usage, Who, WorkAsked, WorkChange, WorktreeOutcome,
};
use stepwell::{Created, Event, Lane, Message, Seq, SessionId, Status, StopReason};

/// Any text: in any script, with quotes, control characters and NUL, sometimes long enough for a
/// blob.
pub fn text() -> BoxedStrategy<String> {
    prop_oneof![
        8 => any::<String>(),
        2 => "[ -~]{0,40}",
        1 => (any::<char>(), 65_500_usize..66_000).prop_map(|(c, n)| c.to_string().repeat(n)),
    ]
    .boxed()
}

fn name() -> BoxedStrategy<String> {
    "[A-Za-z0-9][A-Za-z0-9._-]{0,20}".boxed()
}

fn id() -> BoxedStrategy<SessionId> {
    name().prop_map(|name| name.parse().unwrap()).boxed()
}

/// A lane, most often the main one.
pub fn lane() -> BoxedStrategy<Lane> {
    prop_oneof![Just(Lane::main()), "[a-zé]{1,8}".prop_map(|name| name.parse().unwrap())].boxed()
}

fn seq() -> BoxedStrategy<Seq> {
    (1_u64..10_000).prop_map(Seq::new).boxed()
}

fn digest() -> BoxedStrategy<Digest> {
    any::<[u8; 32]>().prop_map(Digest::from_bytes).boxed()
}

/// Any amount.
pub fn money() -> BoxedStrategy<Money> {
    (-1_000_000_000_000_000_i128..1_000_000_000_000_000).prop_map(Money::from_picos).boxed()
}

fn time() -> BoxedStrategy<Time> {
    any::<i64>().prop_map(Time::from_micros).boxed()
}

/// Any usage.
pub fn usage() -> BoxedStrategy<Usage> {
    any::<[u32; 5]>()
        .prop_map(|[input, output, cached, cache_written, reasoning]| Usage {
            input: input.into(),
            output: output.into(),
            cached: cached.into(),
            cache_written: cache_written.into(),
            reasoning: reasoning.into(),
        })
        .boxed()
}

fn json() -> BoxedStrategy<serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        text().prop_map(Into::into),
    ];
    // `$blob` marks a text that became a blob; a user may write it too.
    let key = prop_oneof![4 => any::<String>(), 1 => Just("$blob".to_owned()), 1 => Just("$$blob".to_owned())];
    leaf.prop_recursive(3, 12, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::vec((key.clone(), inner), 0..4)
                .prop_map(|fields| serde_json::Value::Object(fields.into_iter().collect())),
        ]
    })
    .boxed()
}

fn map() -> BoxedStrategy<BTreeMap<String, serde_json::Value>> {
    prop::collection::btree_map(any::<String>(), json(), 0..3).boxed()
}

fn opaque() -> BoxedStrategy<Option<Opaque>> {
    prop::option::of((name(), text()).prop_map(|(provider, data)| Opaque { provider, data }))
        .boxed()
}

fn image() -> BoxedStrategy<Image> {
    (name(), text(), opaque())
        .prop_map(|(media_type, data, opaque)| Image { media_type, data, opaque })
        .boxed()
}

fn part() -> BoxedStrategy<Part> {
    let words = || (text(), opaque()).prop_map(|(text, opaque)| Text { text, opaque });
    let call = (name(), name(), text(), opaque()).prop_map(|(id, name, arguments, opaque)| {
        Part::ToolCall(ToolCall { id, name, arguments, opaque })
    });
    let images = prop::collection::vec(image(), 0..2);
    let result = (name(), text(), any::<bool>(), images, opaque()).prop_map(
        |(call_id, text, is_error, images, opaque)| {
            Part::ToolResult(ToolResult { call_id, text, is_error, images, opaque })
        },
    );
    prop_oneof![
        words().prop_map(Part::Text),
        words().prop_map(Part::Thinking),
        image().prop_map(Part::Image),
        call,
        result,
    ]
    .boxed()
}

fn role() -> BoxedStrategy<Role> {
    prop::sample::select(vec![Role::System, Role::User, Role::Assistant, Role::Tool]).boxed()
}

/// Any message, even one that no provider would accept.
pub fn message() -> BoxedStrategy<Message> {
    let parts = prop::collection::vec(part(), 0..4);
    let spent = (prop::option::of(usage()), prop::option::of(money()));
    (lane(), role(), parts, prop::option::of(name()), spent)
        .prop_map(|(lane, role, parts, model, (usage, cost))| Message {
            lane,
            role,
            parts,
            model,
            usage,
            cost,
            call: None,
            said: None,
            author: Author::Speaker,
        })
        .boxed()
}

fn answer() -> BoxedStrategy<Answer> {
    prop_oneof![
        text().prop_map(Answer::Text),
        prop::sample::select(vec![Grant::Once, Grant::Always])
            .prop_map(|scope| Answer::Allow { scope }),
        (prop::option::of(text()), any::<bool>())
            .prop_map(|(reason, never)| Answer::Deny { reason, never }),
    ]
    .boxed()
}

fn who() -> BoxedStrategy<Who> {
    text().prop_map(Who::from).boxed()
}

fn mode() -> BoxedStrategy<Option<Mode>> {
    prop::option::of(prop::sample::select(Mode::ALL.to_vec())).boxed()
}

fn work_change() -> BoxedStrategy<WorkChange> {
    let metadata = prop::collection::btree_map(text(), json(), 0..3);
    prop_oneof![
        phase().prop_map(WorkChange::Phase),
        (text(), metadata).prop_map(|(name, metadata)| WorkChange::Checkpoint { name, metadata }),
        text().prop_map(|text| WorkChange::Ask { text }),
        (text(), text()).prop_map(|(question, text)| WorkChange::Answer { question, text }),
        Just(WorkChange::Compact),
    ]
    .boxed()
}

fn phase() -> BoxedStrategy<Phase> {
    let all = [PhaseSet::Lifecycle.phases(), PhaseSet::Workflow.phases()].concat();
    prop::sample::select(all).boxed()
}

fn status() -> BoxedStrategy<Status> {
    prop::sample::select(Status::ALL.to_vec()).boxed()
}

fn reason() -> BoxedStrategy<StopReason> {
    use StopReason as R;
    prop::sample::select(vec![
        R::LlmDone,
        R::MaxSteps,
        R::BudgetExceeded,
        R::Timeout,
        R::ContextFull,
        R::UserInterrupt,
        R::Crashed,
        R::LlmError,
        R::Refusal,
        R::Gate,
        R::Abandoned,
    ])
    .boxed()
}

fn scope() -> BoxedStrategy<Scope> {
    prop::sample::select(vec![Scope::Chat, Scope::Files, Scope::Both]).boxed()
}

fn file_state() -> BoxedStrategy<FileState> {
    prop_oneof![
        Just(FileState::Absent),
        (digest(), any::<u32>()).prop_map(|(blob, mode)| FileState::File { blob, mode }),
        text().prop_map(|target| FileState::Symlink { target }),
        (prop::option::of(digest()), text())
            .prop_map(|(digest, why)| FileState::NotCaptured { digest, why }),
    ]
    .boxed()
}

fn restored() -> BoxedStrategy<Restored> {
    (prop::option::of(phase()), any::<u32>(), prop::option::of(text()), any::<u32>())
        .prop_map(|(phase, discuss_returns, goal, open_gates)| Restored {
            phase,
            discuss_returns,
            goal,
            open_gates,
        })
        .boxed()
}

fn created() -> BoxedStrategy<Created> {
    let origin = prop_oneof![
        Just(Origin::Root),
        id().prop_map(|parent| Origin::Subagent { parent }),
        (id(), seq()).prop_map(|(parent, at)| Origin::Fork { parent, at }),
    ];
    let flow = (text(), text(), text(), map()).prop_map(|(name, pattern, spec, variables)| {
        let hash = stepwell::model::SpecHash::of(spec.as_bytes());
        Flow { name, pattern, spec, hash, variables }
    });
    let project = (text(), text(), map()).prop_map(|(project_type, framework, answers)| Project {
        project_type,
        framework,
        answers,
    });
    let source = (text(), text(), prop::option::of(time()))
        .prop_map(|(system, id, started_at)| Source { system, id, started_at });
    let driver = prop::sample::select(vec![Driver::Own, Driver::External]);
    let phases =
        prop::sample::select(vec![None, Some(PhaseSet::Lifecycle), Some(PhaseSet::Workflow)]);
    let texts = (text(), text(), text(), text(), text());
    let rest = (prop::option::of(flow), prop::option::of(project), prop::option::of(source));
    (id(), texts, driver, phases, origin, rest)
        .prop_map(
            |(id, (task, agent, model, provider, workspace), driver, phases, origin, rest)| {
                let (flow, project, source) = rest;
                Created {
                    agent,
                    model,
                    provider,
                    workspace,
                    driver,
                    phases,
                    origin,
                    flow,
                    project,
                    source,
                    ..Created::new(id, task)
                }
            },
        )
        .boxed()
}

fn change<T: Clone + std::fmt::Debug + 'static>(
    value: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<Change<T>> {
    prop_oneof![Just(Change::Keep), Just(Change::Clear), value.prop_map(Change::Set)].boxed()
}

fn edited() -> BoxedStrategy<Edited> {
    let tags = || prop::collection::btree_set(text(), 0..3);
    let flag = || prop::option::of(any::<bool>());
    let flags = (flag(), flag(), flag());
    let seqs = || prop::collection::btree_set(seq(), 0..3);
    let elsewhere = (any::<[u32; 2]>(), money(), usage(), prop::option::of(text())).prop_map(
        |([steps, errors], cost, usage, last_error)| Elsewhere {
            steps: steps.into(),
            cost,
            usage,
            errors: errors.into(),
            last_error,
        },
    );
    let pins = (seqs(), seqs(), prop::option::of(elsewhere), prop::option::of(who()));
    let own = (change(text()), facts());
    (change(text()), tags(), tags(), map(), change(text()), change(money()), (flags, pins, own))
        .prop_map(|(label, tag, untag, metadata, goal, budget, (flags, pins, own))| Edited {
            label,
            tag,
            untag,
            metadata,
            goal,
            summary: own.0,
            facts: own.1,
            budget,
            pinned: flags.0,
            ready: flags.1,
            trashed: flags.2,
            pin_messages: pins.0,
            unpin_messages: pins.1,
            elsewhere: pins.2,
            who: pins.3.map(Box::new),
        })
        .boxed()
}

fn facts() -> BoxedStrategy<Facts> {
    let mark =
        (id(), seq(), time()).prop_map(|(session, seq, at)| Mark { session, seq, at }).boxed();
    let file = (text(), prop::option::of(text()), prop::option::of(time()), any::<bool>());
    let looks = (prop::option::of(any::<u32>()), prop::option::of(text()), prop::option::of(mark));
    let provenance = (file, looks).prop_map(
        |((from, root, updated_at, recovered), (bytes, stamp, continues))| {
            let digest = stamp.as_ref().map(|it: &String| Digest::of(it.as_bytes()));
            let bytes = bytes.map(u64::from);
            let provenance =
                Provenance { from, root, updated_at, recovered, bytes, digest, stamp, continues };
            Box::new(provenance)
        },
    );
    let fate = prop::sample::select(vec![Fate::Clean, Fate::Merged, Fate::Written, Fate::Kept]);
    let outcome = (fate, text(), prop::collection::vec(text(), 0..3), any::<u8>(), text())
        .prop_map(|(fate, tip, files, count, why)| WorktreeOutcome {
            fate,
            tip,
            files,
            count: count.into(),
            why,
        });
    let isolation = prop::sample::select(vec![Isolation::ReadOnly, Isolation::Worktree]);
    let place = (isolation, any::<[bool; 4]>(), prop::option::of(text()));
    let subagent = (text(), any::<u8>(), place, prop::option::of(outcome)).prop_map(
        |(call, depth, (isolation, flags, base), outcome)| {
            let [merge, uncommitted, ready, misses_changes] = flags;
            let depth = depth.into();
            Box::new(Subagent {
                call,
                depth,
                isolation,
                merge,
                uncommitted,
                base,
                ready,
                misses_changes,
                outcome,
            })
        },
    );
    (prop::option::of(provenance), prop::option::of(subagent), prop::option::of(any::<bool>()))
        .prop_map(|(provenance, subagent, truncated)| Facts { provenance, subagent, truncated })
        .boxed()
}

fn tools() -> BoxedStrategy<Event> {
    let effect = prop::sample::select(vec![
        Effect::Pure,
        Effect::Idempotent,
        Effect::Resumable,
        Effect::Unsafe,
    ]);
    let outcome = prop::sample::select(vec![
        Outcome::Done,
        Outcome::Failed,
        Outcome::Denied,
        Outcome::TimedOut,
        Outcome::Unknown,
    ]);
    prop_oneof![
        (lane(), text(), text(), effect, digest()).prop_map(
            |(lane, call_id, tool, effect, arguments)| {
                let targets = Vec::new();
                ToolStarted { lane, call_id, tool, effect, arguments, targets, child: None }.into()
            }
        ),
        (lane(), text(), outcome, any::<u64>()).prop_map(
            |(lane, call_id, outcome, duration_ms)| {
                ToolFinished { lane, call_id, outcome, duration_ms }.into()
            }
        ),
    ]
    .boxed()
}

fn work() -> BoxedStrategy<Event> {
    let node = prop::sample::select(vec![
        NodeState::Started,
        NodeState::Done,
        NodeState::Failed,
        NodeState::Skipped,
    ]);
    let task = prop::sample::select(vec![
        TaskStatus::Pending,
        TaskStatus::Running,
        TaskStatus::Done,
        TaskStatus::Failed,
        TaskStatus::Skipped,
        TaskStatus::Unrecoverable,
    ]);
    let texts = || prop::collection::vec(text(), 0..3);
    prop_oneof![
        (
            text(),
            node,
            prop::option::of(json()),
            prop::option::of(usage()),
            prop::option::of(text())
        )
            .prop_map(|(key, state, output, usage, error)| {
                // `null` and an absent output read the same.
                let output = output.filter(|output| !output.is_null());
                Node { key, state, output, usage, error }.into()
            }),
        (text(), text(), text(), texts(), task, texts()).prop_map(
            |(id, action, description, deps, status, files)| {
                Task { id, action, description, deps, status, files }.into()
            }
        ),
        (text(), text(), prop::option::of(text()), any::<bool>())
            .prop_map(|(id, text, answer, skipped)| Question { id, text, answer, skipped }.into()),
        (text(), text(), prop::option::of(text()), prop::option::of(time())).prop_map(
            |(id, prompt, default, deadline)| Gate { default, deadline, ..Gate::new(id, prompt) }
                .into()
        ),
        (text(), answer(), who())
            .prop_map(|(id, answer, who)| { GateAnswered { id, answer, who, seen: None }.into() }),
        (text(), file_state(), file_state(), prop::option::of(text())).prop_map(
            |(path, before, after, renamed_from)| {
                FileChanged { path, before, after, renamed_from }.into()
            }
        ),
        (text(), digest()).prop_map(|(path, digest)| Artifact { path, digest }.into()),
        (prop::option::of(text()), prop::option::of(text()), mode(), who()).prop_map(
            |(agent, model, mode, who)| Settings { agent, model, mode, who, ..Settings::default() }
                .into()
        ),
        (text(), lane(), who(), any::<bool>()).prop_map(|(text, lane, who, now)| Said {
            text,
            lane,
            who,
            now
        }
        .into()),
        (0_u64..4, who(), prop::option::of(text())).prop_map(|(epoch, who, reason)| {
            StopAsked { epoch: stepwell::model::Epoch::new(epoch), who, reason }.into()
        }),
        (0_u64..4, who(), work_change()).prop_map(|(epoch, who, change)| {
            WorkAsked { epoch: stepwell::model::Epoch::new(epoch), who, change }.into()
        }),
        ((name(), name(), text()), text(), prop::option::of(text())).prop_map(
            |((system, topic, key), data, text)| {
                Record { system, topic, key, data, text, blobs: Vec::new() }.into()
            }
        ),
        (text(), any::<bool>()).prop_map(|(rule, allow)| Permission::new(rule, allow).into()),
        text().prop_map(|message| Failure { message }.into()),
        (text(), prop::sample::select(vec![About::Event, About::Session, About::Itself]), text())
            .prop_map(|(system, about, data)| Foreign { system, about, data }.into()),
    ]
    .boxed()
}

fn moves() -> BoxedStrategy<Event> {
    let reasons = prop::sample::select(vec![
        CheckpointReason::Manual,
        CheckpointReason::Phase,
        CheckpointReason::Automatic,
    ]);
    let spent = (prop::option::of(usage()), prop::option::of(money()));
    let pinned = prop::collection::vec(seq(), 0..3);
    let maybe = || prop::option::of(text());
    let summary = (maybe(), maybe(), maybe());
    prop_oneof![
        (text(), reasons, map()).prop_map(|(name, reason, metadata)| Checkpoint {
            name,
            reason,
            metadata
        }
        .into()),
        (lane(), (seq(), seq()), summary, pinned, any::<[u32; 2]>(), spent).prop_map(
            |(lane, (from, to), (summary, model, fault), pinned, tokens, (usage, cost))| {
                let [before, after] = tokens.map(u64::from);
                let (tokens_before, tokens_after) = (before, after);
                Compacted {
                    lane,
                    from,
                    to,
                    summary,
                    pinned,
                    tokens_before,
                    tokens_after,
                    usage,
                    cost,
                    model,
                    fault,
                }
                .into()
            }
        ),
        (seq(), scope(), prop::option::of(seq()), any::<u32>()).prop_map(
            |(to, scope, undoes, files)| {
                Rewinding::Begun { to, scope, undoes, files: u64::from(files) }.into()
            }
        ),
        (seq(), text()).prop_map(|(of, why)| Rewinding::Dropped { of, why }.into()),
        (seq(), scope(), restored()).prop_map(|(to, scope, restored)| Rewound {
            to,
            scope,
            restored
        }
        .into()),
        seq().prop_map(|of| Undone::Compaction { of }.into()),
        (seq(), scope(), restored()).prop_map(|(of, scope, restored)| Undone::Rewind {
            of,
            scope,
            restored
        }
        .into()),
        (text(), prop::collection::vec((seq(), digest()), 0..3)).prop_map(|(rule, erased)| {
            let erased = erased.into_iter().map(|(seq, body)| Erased { seq, body }).collect();
            Scrubbed { rule, erased, ..Scrubbed::default() }.into()
        }),
        (lane(), any::<u64>()).prop_map(|(lane, n)| Step { lane, n }.into()),
        (status(), prop::option::of(reason()), prop::option::of(text()))
            .prop_map(|(status, reason, error)| StatusChanged { status, reason, error }.into()),
        (phase(), phase()).prop_map(|(from, to)| PhaseChanged { from, to }.into()),
        ("[a-z]{3,9}_[a-z]{3}", 2_u32..9, json()).prop_map(|(kind, version, body)| {
            Event::Unknown(Unknown { kind, version, body: body.to_string() })
        }),
    ]
    .boxed()
}

/// Any event.
pub fn event() -> BoxedStrategy<Event> {
    prop_oneof![
        4 => message().prop_map(Event::from),
        1 => created().prop_map(Event::from),
        1 => edited().prop_map(Event::from),
        2 => tools(),
        3 => work(),
        3 => moves(),
    ]
    .boxed()
}
