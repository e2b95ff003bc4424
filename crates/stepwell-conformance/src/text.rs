//! Claims about the language of searches, and the text that a hit is shown with.

use stepwell::log::Redactor;
use stepwell::store::query::{Search, Snippet};

use crate::claims::claims;
use crate::harness::say;
use crate::{Fixture, Harness};

claims! { $ text = text_claims for Fixture:
    all_words_must_occur_in_any_order,
    words_of_different_events_do_not_add_up,
    quoted_words_stand_together,
    a_star_matches_the_start_of_a_word,
    the_last_word_may_be_only_begun,
    whole_words_fill_an_answer_first,
    case_does_not_matter,
    a_path_is_found_by_its_parts_together,
    scripts_without_spaces_are_found_inside,
    accents_matter,
    numbers_and_mixed_words_are_found,
    a_question_without_words_finds_nothing,
    hostile_syntax_is_harmless,
    a_snippet_marks_the_words_that_matched,
    a_snippet_of_a_long_text_shows_the_match,
    a_snippet_is_one_line,
    a_snippet_shows_no_part_of_a_secret,
}

/// The numbers of the texts that a search finds.
fn find<F: Fixture>(w: &Harness<F>, texts: &[&str], asked: &str) -> Vec<usize> {
    if !w.has("a") {
        let lease = w.begin_as(stepwell::Created::new(crate::harness::id("a"), ""));
        for text in texts {
            w.add(&lease, say(text));
        }
    }
    let mut found: Vec<_> =
        w.hits(asked).into_iter().map(|(_, seq)| usize::try_from(seq).unwrap() - 2).collect();
    found.sort_unstable();
    found
}

fn none() -> Vec<usize> {
    Vec::new()
}

fn all_words_must_occur_in_any_order<F: Fixture>(w: &mut Harness<F>) {
    let texts = ["stone and water", "water, then stone", "only water"];
    assert_eq!(find(w, &texts, "stone water"), [0, 1]);
    assert_eq!(find(w, &texts, "water stone"), [0, 1]);
    assert_eq!(find(w, &texts, "water"), [0, 1, 2]);
    assert_eq!(find(w, &texts, "water fire"), none());
    assert_eq!(find(w, &texts, "wate stone"), none());
}

fn words_of_different_events_do_not_add_up<F: Fixture>(w: &mut Harness<F>) {
    assert_eq!(find(w, &["stone", "water"], "stone water"), none());
}

fn quoted_words_stand_together<F: Fixture>(w: &mut Harness<F>) {
    let texts = ["deep stone well", "stone deep well", "deep, stone"];
    assert_eq!(find(w, &texts, "\"deep stone\""), [0, 2]);
    assert_eq!(find(w, &texts, "\"deep stone\" well"), [0]);
    assert_eq!(find(w, &texts, "\"stone deep"), [1]);
    assert_eq!(find(w, &texts, "\"deep sto*\""), [0, 2]);
}

fn a_star_matches_the_start_of_a_word<F: Fixture>(w: &mut Harness<F>) {
    let texts = ["stepping", "steps", "misstep", "ste"];
    assert_eq!(find(w, &texts, "step*"), [0, 1]);
    assert_eq!(find(w, &texts, "STEP*"), [0, 1]);
    assert_eq!(find(w, &texts, "tepping"), none());
    assert_eq!(find(w, &texts, "\"step\""), none());
}

fn the_last_word_may_be_only_begun<F: Fixture>(w: &mut Harness<F>) {
    let texts = ["deep stepping", "deep steps", "steps deep", "misstep"];
    assert_eq!(find(w, &texts, "step"), [0, 1, 2]);
    assert_eq!(find(w, &texts, "deep step"), [0, 1, 2]);
    assert_eq!(find(w, &texts, "step deep"), none());
    assert_eq!(find(w, &texts, "\"deep step\""), none());
}

fn whole_words_fill_an_answer_first<F: Fixture>(w: &mut Harness<F>) {
    find(w, &["deep step", "step", "steps", "stepping"], "step");
    let seqs = |text: &str, limit| -> Vec<u64> {
        let hits = w.found(&Search { limit, ..Search::new(text) });
        hits.into_iter().map(|(_, seq)| seq - 2).collect()
    };
    assert_eq!(seqs("step", 1), [1]);
    assert_eq!(seqs("step", 2), [1, 0]);
    assert_eq!(seqs("step", 3), [3, 2, 1]);
    assert_eq!(seqs("step", 9), [3, 2, 1, 0]);
    assert_eq!(seqs("step*", 2), [3, 2], "who types a star asks for beginnings");
    assert_eq!(seqs("deep ste", 1), [0]);
}

fn case_does_not_matter<F: Fixture>(w: &mut Harness<F>) {
    let texts = ["Stone WELL", "ÜBER Ошибка", "stone"];
    assert_eq!(find(w, &texts, "sTONE"), [0, 2]);
    assert_eq!(find(w, &texts, "über"), [1]);
    assert_eq!(find(w, &texts, "ОШИБКА"), [1]);
}

fn a_path_is_found_by_its_parts_together<F: Fixture>(w: &mut Harness<F>) {
    let texts = ["see src/main.rs:12", "main of src, in rs", "src main_test.rs"];
    assert_eq!(find(w, &texts, "src/main.rs"), [0]);
    assert_eq!(find(w, &texts, "main.rs"), [0]);
    assert_eq!(find(w, &texts, "main"), [0, 1, 2]);
    assert_eq!(find(w, &texts, "src/ma*"), [0, 2]);
}

fn scripts_without_spaces_are_found_inside<F: Fixture>(w: &mut Harness<F>) {
    let texts = ["修复数据库连接", "データベースを直す", "据数 库", "ฐานข้อมูล"];
    assert_eq!(find(w, &texts, "数据库"), [0]);
    assert_eq!(find(w, &texts, "库"), [0, 2]);
    assert_eq!(find(w, &texts, "ベース"), [1]);
    assert_eq!(find(w, &texts, "ข้อมูล"), [3]);
}

fn accents_matter<F: Fixture>(w: &mut Harness<F>) {
    let texts = ["resume", "résumé"];
    assert_eq!(find(w, &texts, "resume"), [0]);
    assert_eq!(find(w, &texts, "RÉSUMÉ"), [1]);
}

fn numbers_and_mixed_words_are_found<F: Fixture>(w: &mut Harness<F>) {
    let texts = ["error E0502 at 127.0.0.1:8080", "a C++ x86_64 build"];
    assert_eq!(find(w, &texts, "e0502"), [0]);
    assert_eq!(find(w, &texts, "127.0.0.1"), [0]);
    assert_eq!(find(w, &texts, "8080"), [0]);
    assert_eq!(find(w, &texts, "x86_64"), [1]);
    assert_eq!(find(w, &texts, "502"), none());
}

fn a_question_without_words_finds_nothing<F: Fixture>(w: &mut Harness<F>) {
    let texts = ["stone", "*"];
    for asked in ["", " ", "*", "\"\"", "\"", "-", "?!", "* *", "\u{0}"] {
        assert_eq!(find(w, &texts, asked), none(), "{asked:?}");
    }
}

fn hostile_syntax_is_harmless<F: Fixture>(w: &mut Harness<F>) {
    let texts = ["stone and water", "not near or and", "text: stone"];
    for (asked, expected) in [
        ("stone AND water", vec![0]),
        ("stone NOT water", none()),
        ("NOT", vec![1]),
        ("NEAR OR AND", vec![1]),
        ("NEAR(stone water)", none()),
        ("text:stone", vec![2]),
        ("{text}: stone", vec![2]),
        ("^stone", vec![0, 2]),
        ("stone + water", vec![0]),
        ("(stone", vec![0, 2]),
        ("stone)", vec![0, 2]),
        ("'stone", vec![0, 2]),
        ("stone\"", vec![0, 2]),
        ("stone; DROP TABLE words", none()),
        ("stone\\", vec![0, 2]),
        ("stone**", vec![0, 2]),
    ] {
        assert_eq!(find(w, &texts, asked), expected, "{asked:?}");
    }
    let long = "stone ".repeat(200);
    assert_eq!(find(w, &texts, &long), [0, 2]);
}

fn snippet<F: Fixture>(w: &Harness<F>, text: &str, asked: &str) -> (Snippet, Vec<String>) {
    let lease = w.begin("a");
    w.add(&lease, say(text));
    let found = w.store().search(&Search::new(asked), &Redactor::default()).unwrap();
    assert_eq!(found.hits.len(), 1);
    let snippet = found.hits[0].snippet.clone();
    let marked =
        snippet.matches().iter().map(|range| snippet.text()[range.clone()].to_owned()).collect();
    (snippet, marked)
}

fn a_snippet_marks_the_words_that_matched<F: Fixture>(w: &mut Harness<F>) {
    let text = "Über the Stone there is WATER, and stonework by the deep well.";
    let (snippet, marked) = snippet(w, text, "über stone* \"deep well\" water");
    assert_eq!(snippet.text(), text);
    let expected = ["Über", "Stone", "WATER", "stonework", "deep well"];
    assert_eq!(marked, expected);
}

fn a_snippet_of_a_long_text_shows_the_match<F: Fixture>(w: &mut Harness<F>) {
    let filler = "lorem ipsum ".repeat(500);
    let (snippet, marked) = snippet(w, &format!("{filler}needle {filler}"), "needle");
    assert_eq!(marked, ["needle"]);
    assert!(snippet.text().len() < 500, "{}", snippet.text().len());
    assert!(snippet.text().contains("ipsum needle lorem"), "{}", snippet.text());
}

fn a_snippet_is_one_line<F: Fixture>(w: &mut Harness<F>) {
    let (snippet, marked) = snippet(w, "one\n\n  two\r\n\tneedle\u{b}\nthree", "needle");
    assert_eq!(snippet.text(), "one two needle three");
    assert_eq!(marked, ["needle"]);
}

fn a_snippet_shows_no_part_of_a_secret<F: Fixture>(w: &mut Harness<F>) {
    let line = |n: usize| format!("{}{n}w", "k7Q+zB3/".repeat(7)).split_off(n);
    let lines = [line(0), line(1), line(2)].join("\n");
    let key = format!("-----BEGIN PRIVATE KEY-----\n{lines}\n-----END PRIVATE KEY-----");
    let text = format!("{}{key}\nis the key of the deep well", "lorem ipsum ".repeat(40));
    // The last word of the key's second line, and a word behind the key.
    for (name, asked) in [("first", "1w"), ("second", "deep")] {
        let lease = w.begin(name);
        w.add(&lease, say(&text));
        for hit in w.store().search(&Search::new(asked), &Redactor::default()).unwrap().hits {
            let (shown, marks) = (hit.snippet.text(), hit.snippet.matches());
            assert!(shown.contains("[redacted:private-key]"), "{shown}");
            assert!(!shown.contains("k7Q"), "{shown}");
            let marked = |word: &str| marks.iter().any(|range| &shown[range.clone()] == word);
            assert_eq!(marked("deep"), asked == "deep", "{shown}");
        }
    }
}
