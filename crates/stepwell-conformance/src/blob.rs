//! Claims about blobs: stored once, kept while an event refers to them.

use stepwell::log::SPILL_BYTES;
use stepwell::model::{Digest, FileChanged, FileState, Part, Role, ToolResult};
use stepwell::{Error, ErrorKind, Event, Message};

use crate::claims::claims;
use crate::harness::{id, say};
use crate::{Fixture, Harness};

claims! { $ blob = blob_claims for Fixture:
    a_blob_is_read_back_by_its_digest,
    blobs_of_every_shape_are_read_back,
    several_blobs_are_stored_at_once,
    a_blob_is_kept_under_the_digest_that_was_taken_of_it,
    bytes_that_were_damaged_are_replaced_by_a_write_that_has_them,
    a_blob_that_was_never_stored_is_absent,
    the_same_bytes_are_stored_once,
    a_blob_survives_reopening,
    a_blob_that_no_event_names_stays_for_now,
    an_event_that_names_a_missing_blob_is_refused,
    a_file_event_keeps_its_blobs,
    a_purge_removes_the_blobs_that_only_it_named,
    a_blob_that_two_sessions_name_outlives_the_first_purge,
    a_blob_that_a_fork_shares_outlives_its_parent,
    a_long_text_is_read_back_whole,
    a_text_at_the_limit_is_read_back_whole,
    every_long_part_is_read_back_whole,
    a_long_text_is_stored_once_for_all_that_say_it,
    a_long_text_goes_with_its_last_session,
    a_users_own_blob_key_survives,
}

/// A file that was written, with its bytes as a blob.
pub(crate) fn written(path: &str, blob: Digest) -> FileChanged {
    FileChanged {
        path: path.to_owned(),
        before: FileState::Absent,
        after: FileState::File { blob, mode: 0o644 },
        renamed_from: None,
    }
}

/// Bytes that do not compress well.
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    };
    std::iter::repeat_with(next).take(len).collect()
}

fn a_blob_is_kept_under_the_digest_that_was_taken_of_it<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let digest = Digest::of(b"hello");
    w.store().keep_blobs(&[(digest, b"hello")]).unwrap();
    assert_eq!(w.store().blob(&digest).unwrap(), b"hello");
    w.add(&lease, written("x", digest));
    assert!(w.store().maintain().verify(&lease.session).unwrap().is_sound());
    // Bytes with another digest are damage, and are never returned.
    let wrong = Digest::of(b"other");
    w.store().keep_blobs(&[(wrong, b"hello")]).unwrap();
    let error = w.store().blob(&wrong).unwrap_err();
    assert!(matches!(error, Error::DamagedBlob { .. }), "{error}");
}

fn bytes_that_were_damaged_are_replaced_by_a_write_that_has_them<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let long = "long ".repeat(40_000);
    for (n, right) in [b"right".as_slice(), long.as_bytes()].into_iter().enumerate() {
        let digest = Digest::of(right);
        w.store().keep_blobs(&[(digest, b"wrong")]).unwrap();
        w.add(&lease, written(&format!("f{n}"), digest));
        let error = w.store().blob(&digest).unwrap_err();
        assert!(matches!(error, Error::DamagedBlob { .. }), "{error}");
    }
    w.store().put_blob(b"right").unwrap();
    // A long text has a blob, too.
    w.add(&lease, say(&long));
    for right in [b"right".as_slice(), long.as_bytes()] {
        assert_eq!(w.store().blob(&Digest::of(right)).unwrap(), right);
    }
    assert!(w.store().maintain().verify(&lease.session).unwrap().is_sound());
}

fn absent<F: Fixture>(w: &Harness<F>, digest: &Digest) {
    let error = w.store().blob(digest).unwrap_err();
    assert!(matches!(&error, Error::NoBlob(missing) if missing == digest), "{error}");
    assert_eq!(error.kind(), ErrorKind::Absent);
}

fn several_blobs_are_stored_at_once<F: Fixture>(w: &mut Harness<F>) {
    let (one, two) = (noise(70_000, 3), noise(9, 4));
    let blobs = [&one[..], &two, b"", &one];
    let digests = blobs.map(Digest::of);
    let named: Vec<_> = digests.into_iter().zip(blobs).collect();
    w.store().keep_blobs(&named).unwrap();
    assert_eq!(w.store().blob(&digests[0]).unwrap(), one);
    assert_eq!(w.store().blob(&digests[1]).unwrap(), two);
    assert_eq!(w.store().blob(&digests[2]).unwrap(), b"");
    w.store().keep_blobs(&[]).unwrap();
}

fn a_blob_is_read_back_by_its_digest<F: Fixture>(w: &mut Harness<F>) {
    let digest = w.store().put_blob(b"hello").unwrap();
    assert_eq!(digest, Digest::of(b"hello"));
    assert_eq!(w.store().blob(&digest).unwrap(), b"hello");
}

fn blobs_of_every_shape_are_read_back<F: Fixture>(w: &mut Harness<F>) {
    for bytes in
        [Vec::new(), vec![0], vec![0; 1_000_000], vec![0xff, 0xfe, 0x00], noise(300_000, 7)]
    {
        let digest = w.store().put_blob(&bytes).unwrap();
        assert_eq!(w.store().blob(&digest).unwrap(), bytes, "{}", bytes.len());
    }
}

fn a_blob_that_was_never_stored_is_absent<F: Fixture>(w: &mut Harness<F>) {
    absent(w, &Digest::of(b"never"));
}

fn the_same_bytes_are_stored_once<F: Fixture>(w: &mut Harness<F>) {
    let bytes = noise(50_000, 3);
    let first = w.store().put_blob(&bytes).unwrap();
    let used = w.store().maintain().disk_use().unwrap().blobs;
    assert!(used >= 40_000, "{used}");
    assert_eq!(w.store().put_blob(&bytes).unwrap(), first);
    assert_eq!(w.store().maintain().disk_use().unwrap().blobs, used);
    w.store().put_blob(&noise(50_000, 5)).unwrap();
    assert!(w.store().maintain().disk_use().unwrap().blobs > used);
}

fn a_blob_survives_reopening<F: Fixture>(w: &mut Harness<F>) {
    let digest = w.store().put_blob(b"hello").unwrap();
    w.reopen();
    assert_eq!(w.store().blob(&digest).unwrap(), b"hello");
}

fn a_blob_that_no_event_names_stays_for_now<F: Fixture>(w: &mut Harness<F>) {
    let digest = w.store().put_blob(b"soon").unwrap();
    let lease = w.begin("other");
    w.release(&lease);
    w.store().maintain().purge(&[id("other").into()]).unwrap();
    let lease = w.begin("a");
    w.add(&lease, written("x", digest));
    assert_eq!(w.store().blob(&digest).unwrap(), b"soon");
}

fn an_event_that_names_a_missing_blob_is_refused<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let digest = Digest::of(b"never");
    let error = w.try_add(&lease, vec![written("x", digest).into()]).unwrap_err();
    assert!(matches!(&error, Error::NoBlob(missing) if *missing == digest), "{error}");
    assert_eq!(w.log("a").len(), 1);
}

fn a_file_event_keeps_its_blobs<F: Fixture>(w: &mut Harness<F>) {
    let before = w.store().put_blob(b"old").unwrap();
    let after = w.store().put_blob(b"new").unwrap();
    let lease = w.begin("a");
    let changed = FileChanged {
        before: FileState::File { blob: before, mode: 0o600 },
        ..written("x", after)
    };
    w.add(&lease, changed.clone());
    w.reopen();
    assert_eq!(w.log("a")[1].event, Event::File(changed));
    assert_eq!(w.store().blob(&before).unwrap(), b"old");
    assert_eq!(w.store().blob(&after).unwrap(), b"new");
    w.assert_folded("a");
}

fn a_purge_removes_the_blobs_that_only_it_named<F: Fixture>(w: &mut Harness<F>) {
    let digest = w.store().put_blob(b"gone soon").unwrap();
    let lease = w.begin("a");
    w.add(&lease, written("x", digest));
    w.add(&lease, written("y", digest));
    w.release(&lease);
    w.store().maintain().trash(&[id("a").into()]).unwrap();
    assert!(w.store().blob(&digest).is_ok());
    w.store().maintain().purge(&[id("a").into()]).unwrap();
    absent(w, &digest);
    assert_eq!(w.store().maintain().disk_use().unwrap().blobs, 0);
}

fn a_blob_that_two_sessions_name_outlives_the_first_purge<F: Fixture>(w: &mut Harness<F>) {
    let digest = w.store().put_blob(b"shared").unwrap();
    for name in ["a", "b"] {
        let lease = w.begin(name);
        w.add(&lease, written("x", digest));
        w.release(&lease);
    }
    w.store().maintain().purge(&[id("a").into()]).unwrap();
    assert_eq!(w.store().blob(&digest).unwrap(), b"shared");
    w.assert_folded("b");
    w.store().maintain().purge(&[id("b").into()]).unwrap();
    absent(w, &digest);
}

fn a_blob_that_a_fork_shares_outlives_its_parent<F: Fixture>(w: &mut Harness<F>) {
    let shared = w.store().put_blob(b"before the fork").unwrap();
    let later = w.store().put_blob(b"after the fork").unwrap();
    let lease = w.begin("a");
    w.add(&lease, written("x", shared));
    let fork = w.fork("a", 2, "f");
    w.add(&lease, written("x", later));
    w.release(&lease);
    w.release(&fork);
    w.store().maintain().purge(&[id("a").into()]).unwrap();
    assert_eq!(w.store().blob(&shared).unwrap(), b"before the fork");
    absent(w, &later);
    w.assert_folded("f");
    w.store().maintain().purge(&[id("f").into()]).unwrap();
    absent(w, &shared);
}

fn long(word: &str) -> String {
    word.repeat(SPILL_BYTES / word.len() + 2)
}

fn a_long_text_is_read_back_whole<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let text = long("länger 漢字 ");
    w.add(&lease, say(&text));
    w.reopen();
    assert_eq!(w.log("a")[1].event, Event::Message(Message::user(text)));
    w.assert_folded("a");
}

fn a_text_at_the_limit_is_read_back_whole<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    for len in [SPILL_BYTES - 1, SPILL_BYTES, SPILL_BYTES + 1] {
        let text = "x".repeat(len);
        w.add(&lease, say(&text));
        let last = w.log("a").pop().unwrap();
        assert_eq!(last.event, Event::Message(Message::user(text)));
    }
}

fn every_long_part_is_read_back_whole<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let opaque = stepwell::model::Opaque { provider: "acme".to_owned(), data: long("opaque ") };
    let parts = vec![
        Part::text(long("text ")),
        Part::Thinking(stepwell::model::Text { text: long("thinking "), opaque: Some(opaque) }),
        Part::Image(stepwell::model::Image {
            media_type: "image/png".to_owned(),
            data: long("aW1n"),
            opaque: None,
        }),
        Part::ToolResult(ToolResult {
            call_id: "c".to_owned(),
            text: long("result "),
            ..ToolResult::default()
        }),
    ];
    let message = Message::new(Role::Assistant, parts).calling("c", "sh", long("{\"x\":"));
    w.add(&lease, message.clone());
    assert_eq!(w.log("a")[1].event, Event::Message(message));
    w.assert_folded("a");
}

fn a_long_text_is_stored_once_for_all_that_say_it<F: Fixture>(w: &mut Harness<F>) {
    let text: String =
        noise(2 * SPILL_BYTES, 9).iter().map(|byte| char::from(b'a' + byte % 26)).collect();
    let (a, b) = (w.begin("a"), w.begin("b"));
    w.add(&a, say(&text));
    let used = w.store().maintain().disk_use().unwrap();
    assert!(used.blobs > 0 && used.events < SPILL_BYTES as u64);
    for lease in [&a, &b] {
        w.add(lease, say(&text));
        w.add(lease, Message::tool_result("c", text.clone()));
    }
    assert_eq!(w.store().maintain().disk_use().unwrap().blobs, used.blobs);
}

fn a_long_text_goes_with_its_last_session<F: Fixture>(w: &mut Harness<F>) {
    let text = long("fleeting ");
    for name in ["a", "b"] {
        let lease = w.begin(name);
        w.add(&lease, say(&text));
        w.release(&lease);
    }
    w.store().maintain().purge(&[id("a").into()]).unwrap();
    let last = w.log("b").pop().unwrap();
    assert_eq!(last.event, Event::Message(Message::user(text)));
    w.store().maintain().purge(&[id("b").into()]).unwrap();
    assert_eq!(w.store().maintain().disk_use().unwrap().blobs, 0);
}

fn a_users_own_blob_key_survives<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let node = stepwell::model::Node {
        key: "n".to_owned(),
        state: stepwell::model::NodeState::Done,
        output: Some(serde_json::json!({
            "$blob": Digest::of(b"mine").to_string(),
            "$$blob": { "$blob": 1 },
            "long": long("y "),
        })),
        usage: None,
        error: None,
    };
    w.add(&lease, node.clone());
    assert_eq!(w.log("a")[1].event, Event::Node(node));
    w.assert_folded("a");
}
