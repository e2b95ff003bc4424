// @ts-check
// Unified diffs, with colours and line numbers.
import { html, useState } from './html.js';
import { LongText } from './parts.js';
import { count, exact, plain } from './text.js';

/** How many lines are shown at first, and how much of one. */
const FIRST = 400;
const FIRST_OF_LINE = 4000;

/**
 * @typedef {{kind: 'add' | 'del' | 'same' | 'hunk' | 'meta', text: string, old?: number, new?: number}} Line
 */

/** @param {string} text @returns {Line[]} */
export function parseDiff(text) {
  let [left, right] = [0, 0];
  let inHunk = false;
  const lines = text.replace(/\n$/, '').split('\n');
  return lines.map((line) => {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(line);
    if (hunk) {
      [left, right] = [Number(hunk[1]), Number(hunk[2])];
      inHunk = true;
      return { kind: 'hunk', text: line };
    }
    if (line.startsWith('diff --git ')) inHunk = false;
    if (
      !inHunk &&
      /^(diff |index |--- |\+\+\+ |new file|deleted file|old mode|new mode|similarity|rename )/.test(line)
    ) {
      return { kind: 'meta', text: line };
    }
    if (line.startsWith('+')) return { kind: 'add', text: line.slice(1), new: right++ };
    if (line.startsWith('-')) return { kind: 'del', text: line.slice(1), old: left++ };
    if (line.startsWith('\\')) return { kind: 'meta', text: line };
    return { kind: 'same', text: line.replace(/^ /, ''), old: left++, new: right++ };
  });
}

const SIGN = { add: '+', del: '−', same: ' ', hunk: '', meta: '' };
const SAID = { add: 'added', del: 'removed', same: '', hunk: '', meta: '' };

/** A text of which every line is added or removed. @param {'add' | 'del'} kind @param {string} text @returns {Line[]} */
export function allLines(kind, text) {
  const lines = text.replace(/\n$/, '').split('\n');
  return lines.map((line) => ({ kind, text: line }));
}

/**
 * A diff. In an approval it is `whole`: every line and character is shown.
 * @param {{text?: string, lines?: Line[], label?: string, whole?: boolean}} props
 */
export function Diff({ text = '', lines, label, whole }) {
  const [most, more] = useState(FIRST);
  const isShown = (/** @type {Line} */ line) =>
    whole || !(line.kind === 'meta' && /^(diff|index|---|\+\+\+) ?/.test(line.text));
  const all = (lines ?? parseDiff(text)).filter(isShown);
  const [first, render] = whole ? [Number.POSITIVE_INFINITY, exact] : [FIRST_OF_LINE, plain];
  const shown = all.slice(0, most);
  const numbered = all.some((line) => line.kind === 'hunk');
  return html`
    <div class="diff" tabindex="0" role="region" aria-label=${label ?? 'Changed lines'}>
      <table><tbody>
        ${shown.map(
          (line) => html`
          <tr class=${`line ${line.kind}`}>
            ${numbered && html`<td class="number">${line.old ?? ''}</td><td class="number">${line.new ?? ''}</td>`}
            <td class="sign"><span aria-hidden="true">${SIGN[line.kind]}</span><span class="unseen">${SAID[line.kind]}
              </span></td>
            <td class="text"><${LongText} text=${line.text} first=${first} render=${render} /></td>
          </tr>`,
        )}
      </tbody></table>
      ${all.length > most && html`<button class="small" data-more="yes"
        onClick=${() => more(most * 4)}>Show more of ${count(all.length)} lines</button>`}
    </div>`;
}

/** Several files' diffs, folded if there are many. @param {{files: any[], open?: boolean, none?: string}} props */
export function FileDiffs({ files, open, none = 'No file differs.' }) {
  if (!files.length) return html`<p class="dim">${none}</p>`;
  return html`<div class="files">
    ${files.map(
      (file) => html`
      <details class="fold file" key=${file.path} open=${open ?? files.length <= 3}>
        <summary>
          <span class=${`tag ${file.change}`}>${file.change}</span>
          <code class="path">${plain(file.renamed_from ? `${file.renamed_from} → ${file.path}` : file.path)}</code>
          <span class="grow"></span>
          <span class="plus">+${file.added}</span> <span class="minus">−${file.removed}</span>
        </summary>
        ${file.diff ? html`<${Diff} text=${file.diff} label=${`Changes of ${file.path}`} />` : html`<p
          class="dim">Its contents are not shown.</p>`}
      </details>`,
    )}
  </div>`;
}
