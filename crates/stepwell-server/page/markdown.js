// @ts-check
// A small part of Markdown, from text to nodes: headings, paragraphs, lists, quotes, tables, code,
// emphasis, links. Nothing in a text becomes markup, and no picture is loaded.
import { html } from './html.js';
import { plain } from './text.js';

/** @param {string} text */
export function markdown(text) {
  const lines = plain(text).split('\n');
  return html`<div class="markdown" dir="auto">${blocks(lines)}</div>`;
}

/** @param {string[]} lines @param {number} [depth] @returns {any[]} */
function blocks(lines, depth = 0) {
  const found = [];
  let at = 0;
  while (at < lines.length) {
    const [node, next] = block(lines, at, depth);
    if (node) found.push(node);
    at = Math.max(next, at + 1);
  }
  return found;
}

const ITEM = /^(\s*)(?:[-*+]|(\d{1,9})[.)])\s+(.*)$/;
const HEADING = /^(#{1,6})\s+(.*?)\s*#*$/;

/** One block, and the line behind it. @param {string[]} lines @param {number} at @param {number} depth @returns {[any, number]} */
function block(lines, at, depth) {
  const line = lines[at];
  if (!line.trim()) return [null, at + 1];
  const fence = /^\s*(`{3,}|~{3,})\s*([\w+#.-]*)/.exec(line);
  if (fence) return code(lines, at, fence[1]);
  const heading = HEADING.exec(line);
  if (heading) {
    // Headings of a text rank below the page's own.
    const level = Math.min(heading[1].length + 3, 6);
    return [html`<${`h${level}`} class=${`h${heading[1].length}`}>${inline(heading[2])}<//>`, at + 1];
  }
  if (/^\s*([-*_])(?:\s*\1){2,}\s*$/.test(line)) return [html`<hr />`, at + 1];
  if (/^\s*>/.test(line) && depth < 6) return quote(lines, at, depth);
  if (ITEM.test(line) && depth < 6) return list(lines, at, depth);
  if (line.includes('|') && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(lines[at + 1] ?? ''))
    return table(lines, at);
  return paragraph(lines, at);
}

/** @param {string[]} lines @param {number} at @param {string} fence @returns {[any, number]} */
function code(lines, at, fence) {
  let end = at + 1;
  while (end < lines.length && !lines[end].trim().startsWith(fence)) end += 1;
  const text = lines.slice(at + 1, end).join('\n');
  return [html`<pre class="code" tabindex="0"><code>${text}</code></pre>`, end + 1];
}

/** @param {string[]} lines @param {number} at @param {number} depth @returns {[any, number]} */
function quote(lines, at, depth) {
  let end = at;
  while (end < lines.length && /^\s*>/.test(lines[end])) end += 1;
  const inner = lines.slice(at, end).map((line) => line.replace(/^\s*>\s?/, ''));
  return [html`<blockquote>${blocks(inner, depth + 1)}</blockquote>`, end];
}

/** @param {string[]} lines @param {number} at @param {number} depth @returns {[any, number]} */
function list(lines, at, depth) {
  const first = /** @type {RegExpExecArray} */ (ITEM.exec(lines[at]));
  const indent = first[1].length;
  const ordered = first[2] !== undefined;
  /** @type {string[][]} */ const items = [];
  let end = at;
  while (end < lines.length) {
    const item = ITEM.exec(lines[end]);
    if (item && item[1].length <= indent + 1) {
      if ((item[2] !== undefined) !== ordered || item[1].length < indent) break;
      items.push([item[3]]);
    } else if (lines[end].trim() && /^\s/.test(lines[end])) {
      items[items.length - 1].push(lines[end].slice(Math.min(indent + 2, lines[end].search(/\S/))));
    } else if (lines[end].trim() || !/^\s+\S|^\s*([-*+]|\d+[.)])\s/.test(lines[end + 1] ?? '')) {
      break;
    }
    end += 1;
  }
  const nodes = items.map(
    (item) => html`<li>${item.length === 1 ? inline(item[0]) : tight(blocks(item, depth + 1))}</li>`,
  );
  return [ordered ? html`<ol start=${Number(first[2])}>${nodes}</ol>` : html`<ul>${nodes}</ul>`, end];
}

/** A list's first paragraph needs no space around it. @param {any[]} nodes */
function tight(nodes) {
  const [first, ...rest] = nodes;
  return first?.type === 'p' ? [html`<span>${first.props.children}</span>`, ...rest] : nodes;
}

/** @param {string} line */
function cells(line) {
  return line
    .trim()
    .replace(/^\||\|$/g, '')
    .split('|')
    .map((cell) => cell.trim());
}

/** @param {string[]} lines @param {number} at @returns {[any, number]} */
function table(lines, at) {
  let end = at + 2;
  while (end < lines.length && lines[end].includes('|') && lines[end].trim()) end += 1;
  const rows = lines
    .slice(at + 2, end)
    .map((line) => html`<tr>${cells(line).map((cell) => html`<td>${inline(cell)}</td>`)}</tr>`);
  const head = cells(lines[at]).map((cell) => html`<th scope="col">${inline(cell)}</th>`);
  return [html`<div class="scroll-x"><table><thead><tr>${head}</tr></thead><tbody>${rows}</tbody></table></div>`, end];
}

/** @param {string[]} lines @param {number} at @returns {[any, number]} */
function paragraph(lines, at) {
  let end = at + 1;
  const starts = (/** @type {string} */ line) =>
    !line.trim() || /^\s*(`{3,}|~{3,}|>)/.test(line) || HEADING.test(line) || ITEM.test(line);
  while (end < lines.length && !starts(lines[end])) end += 1;
  return [html`<p>${inline(lines.slice(at, end).join('\n'))}</p>`, end];
}

// Each alternative is bounded, so that any text is read in one pass.
const INLINE =
  /(`+)([^`]{1,2000}?)\1(?!`)|\*\*([^*\n]{1,1000})\*\*|__([^_\n]{1,1000})__|(?<![\w*])\*([^*\n]{1,1000})\*(?![\w*])|(?<![\w_])_([^_\n]{1,1000})_(?![\w_])|~~([^~\n]{1,1000})~~|!?\[([^\]\n]{0,500})\]\(([^)\s]{1,2000})\)|(https?:\/\/[^\s<>()"'`]{1,2000})/g;

/** @param {string} text @returns {any[]} */
function inline(text) {
  const nodes = [];
  let at = 0;
  for (const found of text.matchAll(INLINE)) {
    if (found.index > at) nodes.push(text.slice(at, found.index));
    at = found.index + found[0].length;
    if (found[2] !== undefined) nodes.push(html`<code>${found[2]}</code>`);
    else if (found[3] ?? found[4]) nodes.push(html`<strong>${inline(found[3] ?? found[4])}</strong>`);
    else if (found[5] ?? found[6]) nodes.push(html`<em>${inline(found[5] ?? found[6])}</em>`);
    else if (found[7]) nodes.push(html`<del>${found[7]}</del>`);
    else if (found[9]) nodes.push(link(found[9], found[8]));
    else if (found[10]) nodes.push(link(found[10], found[10]));
  }
  if (at < text.length) nodes.push(text.slice(at));
  return nodes;
}

/** A link to the web, with its address in full. Any other address stays text. @param {string} where @param {string} text */
function link(where, text) {
  if (!/^https?:\/\//i.test(where)) return text && text !== where ? `${text} (${where})` : where;
  const label = text && text !== where ? [text, html` <span class="dim">(${where})</span>`] : where;
  return html`<a href=${where} target="_blank" rel="noopener noreferrer">${label}</a>`;
}
