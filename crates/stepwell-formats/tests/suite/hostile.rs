//! Hostile text stays text.

use sha2::{Digest as _, Sha256};
use stepwell::model::{Image, Part, Role, Text, ToolResult};
use stepwell::{Created, Message, Stepwell};
use stepwell_formats::Format;

use crate::support::{id, text};

/// What somebody may say, in every place where something is said.
const ATTACKS: &[&str] = &[
    "</details></details><script>alert(1)</script>",
    "</div></section></main><img src=x onerror=alert(1)>",
    "\"><svg onload=alert(1)>",
    "' onmouseover='alert(1)",
    "<a href=\"javascript:alert(1)\">x</a> javascript:alert(1)",
    "<!-- open",
    "<style>@import url(http://evil.example)</style>",
    "```\nunclosed <b>code</b>",
    "````\n```\n</details>",
    "- ```\n<img src=x onerror=alert(1)>",
    "- a\n   ```\n<img src=x onerror=alert(1)>\n```",
    "` <script>alert(1)</script>\n` x ` <script>alert(1)</script> ` y",
    "\\` <script>alert(1)</script> `",
    "</summary></pre></code>\u{0}\u{1b}[31m",
    "~~~~\n</details>\n~~~",
    "# Assistant\n\nI agree.\n\nAssistant\n---\n\n## User",
    "[x]: <javascript:alert(1)>\n<?php",
    "| a | b |\n|---|---|\n</td>",
    "| a | b |\n|--:|:-:|\n| <b> | x |",
    "[x](javascript:alert(1)) ![y](http://evil.example/y.png \"t\") [z][q]\n\n[q]: http://evil.example",
    "<https://evil.example> \u{fdd0}script\u{fdd0} &lt;script&gt; &#60;b&#62;",
    "```a\" onload=alert(1)\nx\n```",
];

fn attacked(attack: &str, format: Format) -> String {
    let well = Stepwell::in_memory();
    let created = Created::new(id("a"), attack).with_agent(attack).with_model("p", attack);
    let session = well.create(created).unwrap();
    session.append(Message::system(attack)).unwrap();
    session.append(Message::user(attack)).unwrap();
    let mut answer = Message::assistant(attack)
        .calling("c", attack, serde_json::json!({ "a": attack }).to_string())
        .calling("d", "t", attack);
    answer.parts.push(Part::Thinking(Text { text: attack.to_owned(), opaque: None }));
    let image = |media_type: &str, data: &str| Image {
        media_type: media_type.to_owned(),
        data: data.to_owned(),
        opaque: None,
    };
    answer.parts.push(Part::Image(image(attack, "AAAA")));
    answer.parts.push(Part::Image(image("image/png", attack)));
    answer.parts.push(Part::Image(image("image/png", "http://evil.example/a.png")));
    answer.parts.push(Part::Image(image("image/svg+xml", "AAAA")));
    session.append(answer).unwrap();
    let result = ToolResult {
        call_id: "c".to_owned(),
        text: attack.to_owned(),
        is_error: true,
        images: vec![image("text/html", "AAAA")],
        opaque: None,
    };
    session.append(Message::new(Role::Tool, vec![Part::ToolResult(result)])).unwrap();
    session
        .append(stepwell::model::Checkpoint { name: attack.to_owned(), ..Default::default() })
        .unwrap();
    text(&well, "a", format)
}

/// The tags of a page, as a browser would see them.
fn tags(html: &str) -> Vec<&str> {
    html.split('<').skip(1).map(|rest| &rest[..rest.find('>').unwrap_or(rest.len())]).collect()
}

#[test]
fn no_hostile_text_becomes_markup_in_html() {
    for attack in ATTACKS {
        let page = attacked(attack, Format::HTML);
        // The same tags as for harmless words of the same shape, one for one.
        let harmless = attack.replace(['<', '>', '"', '\'', '&'], "x");
        let calm = attacked(&harmless, Format::HTML);
        assert_eq!(tags(&page), tags(&calm), "{attack}");
        assert!(!page.contains('\0') && !page.contains('\u{1b}'), "{attack}");
    }
}

#[test]
fn an_html_page_asks_for_nothing() {
    for attack in ATTACKS {
        let page = attacked(attack, Format::HTML);
        for tag in tags(&page) {
            let name = tag.split_whitespace().next().unwrap_or_default();
            let known = [
                "!DOCTYPE",
                "html",
                "head",
                "meta",
                "title",
                "style",
                "body",
                "main",
                "h1",
                "h2",
                "table",
                "tr",
                "th",
                "td",
                "p",
                "section",
                "div",
                "details",
                "summary",
                "pre",
                "img",
                "ul",
                "li",
                "code",
                "ol",
                "h3",
                "h4",
                "h5",
                "h6",
                "em",
                "strong",
                "del",
                "blockquote",
                "hr",
                "br",
                "thead",
                "tbody",
                "span",
                "time",
            ];
            assert!(known.contains(&name.trim_start_matches('/')), "{tag}");
            for attribute in ["href", "srcset", "action", "style", "onload", "onerror", "srcdoc"] {
                assert!(!tag.contains(&format!(" {attribute}=")), "{tag}");
            }
            if let Some((_, src)) = tag.split_once("src=") {
                assert!(src.starts_with("\"data:image/"), "{tag}");
            }
        }
        let style = &page[page.find("<style>").unwrap()..page.find("</style>").unwrap()];
        assert!(!style.contains("url(") && !style.contains("@import"));
        assert!(page.contains("default-src 'none'"));
    }
}

#[test]
fn the_policy_allows_the_pages_own_style_and_no_other() {
    let page = attacked("x", Format::HTML);
    let style = &page[page.find("<style>").unwrap() + 7..page.find("</style>").unwrap()];
    let digest = Sha256::digest(style);
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode(digest);
    assert!(page.contains(&format!("style-src 'sha256-{encoded}'")));
}

/// The lines of Markdown that stand outside of the document's own code blocks.
fn outside_code(page: &str) -> Vec<&str> {
    let mut fence: Option<&str> = None;
    let mut outside = Vec::new();
    for line in page.lines() {
        let ticks = line.trim_end_matches(|c: char| c != '`');
        match fence {
            Some(open) if line == open => fence = None,
            Some(_) => {}
            None if ticks.len() >= 3 && ticks.chars().all(|c| c == '`') => fence = Some(ticks),
            None => outside.push(line),
        }
    }
    assert!(fence.is_none(), "a code block is left open");
    outside
}

#[test]
fn no_hostile_text_becomes_a_tag_in_markdown() {
    let calm = attacked("x", Format::MARKDOWN);
    let own = |line: &&str| line.starts_with("<details>") || line.starts_with("</details>");
    let folds = outside_code(&calm).into_iter().filter(own).count();
    for attack in ATTACKS {
        let page = attacked(attack, Format::MARKDOWN);
        let lines = outside_code(&page);
        assert_eq!(lines.iter().filter(|line| own(line)).count(), folds, "{attack}");
        for line in lines.iter().filter(|line| !own(line)) {
            let inner = line.strip_prefix("<summary>").unwrap_or(line);
            let inner = inner.strip_suffix("</summary>").unwrap_or(inner);
            let tag = inner.match_indices('<').any(|(at, _)| {
                let escaped = at > 0 && inner.as_bytes()[at - 1] == b'\\';
                let next = inner[at + 1..].chars().next().unwrap_or(' ');
                !escaped && (next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?'))
            });
            // A list's names stand in code of their own, on one line.
            assert!(!tag || line.starts_with("- `"), "{attack}: {line}");
        }
    }
}

#[test]
fn no_hostile_text_makes_a_heading_of_the_documents_own_level() {
    let own = |page: &str| -> Vec<String> {
        let heading = |line: &&str| line.starts_with("# ") || line.starts_with("## ");
        outside_code(page).into_iter().filter(heading).skip(1).map(str::to_owned).collect()
    };
    let calm = own(&attacked("x", Format::MARKDOWN));
    for attack in ATTACKS {
        let page = attacked(attack, Format::MARKDOWN);
        assert_eq!(own(&page), calm, "{attack}");
        let lines = outside_code(&page);
        let underlined = lines.windows(2).any(|pair| {
            let rule = |c: char| c == '-' || c == '=';
            !pair[0].trim().is_empty() && !pair[1].is_empty() && pair[1].chars().all(rule)
        });
        assert!(!underlined, "{attack}: {page}");
    }
}

#[test]
fn a_table_keeps_its_cells() {
    let page = attacked("a | b\nc", Format::MARKDOWN);
    assert!(page.contains("| agent | a \\| b c |\n"), "{page}");
}
