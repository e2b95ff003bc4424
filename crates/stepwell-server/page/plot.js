// @ts-check
// Plots in SVG. Each also has its numbers as a table, for screen readers.
import { html } from './html.js';
import { money } from './text.js';

/** @typedef {{name: string, value: number, label?: string, detail?: string}} Bar */

/** Round numbers for an axis. @param {number} most */
function ticks(most) {
  if (!(most > 0)) return [0];
  const step = 10 ** Math.floor(Math.log10(most));
  const unit = most / step > 5 ? step * 2 : most / step > 2 ? step : step / 2;
  const found = [];
  for (let at = 0; at <= most + unit * 0.01; at += unit) found.push(at);
  return found;
}

/** @param {{title: string, bars: Bar[], format?: (n: number) => string}} props */
function Numbers({ title, bars, format = money }) {
  return html`<details class="numbers"><summary>Numbers</summary><div class="scroll-x"><table><caption class="unseen">
    ${title}</caption>
    <tbody>${bars.map((bar) => html`<tr><th scope="row">${bar.name}</th><td>${format(bar.value)}</td><td class="dim">
      ${bar.detail ?? ''}</td></tr>`)}</tbody>
  </table></div></details>`;
}

/** Columns over days. @param {{title: string, bars: Bar[], format?: (n: number) => string}} props */
export function Columns({ title, bars, format = money }) {
  const width = Math.max(Math.min(window.innerWidth - (window.innerWidth > 720 ? 290 : 64), 990), 260);
  const [height, left, bottom, top] = [190, 52, 22, 10];
  const most = Math.max(...bars.map((bar) => bar.value), 0.0001);
  const marks = ticks(most);
  const ceiling = Math.max(most, marks[marks.length - 1] ?? most);
  const y = (/** @type {number} */ value) => top + (height - top - bottom) * (1 - value / ceiling);
  const space = (width - left) / Math.max(bars.length, 1);
  const thick = Math.min(space * 0.7, 44);
  const every = Math.ceil(bars.length / Math.max(Math.floor(width / 70), 1));
  return html`<figure class="plot"><figcaption>${title}</figcaption>
    <svg viewBox=${`0 0 ${width} ${height}`} role="img"
      aria-label=${`${title}: ${bars.length} bars, at most ${format(most)}`}>
      ${marks.map((mark) => html`<g class="axis"><line x1=${left} x2=${width} y1=${y(mark)} y2=${y(mark)} />
        <text x=${left - 6} y=${y(mark) + 4} text-anchor="end">${format(mark)}</text></g>`)}
      ${bars.map(
        (bar, n) => html`<g key=${bar.name}>
        <rect class="bar" x=${left + n * space + (space - thick) / 2} width=${thick} y=${y(bar.value)}
          height=${Math.max(height - bottom - y(bar.value), bar.value > 0 ? 1 : 0)} rx="2">
          <title>${`${bar.name}: ${format(bar.value)}${bar.detail ? `, ${bar.detail}` : ''}`}</title></rect>
        ${n % every === 0 && html`<text class="axis-text" x=${left + n * space + space / 2} y=${height - 6}
          text-anchor="middle">${bar.label ?? bar.name}</text>`}
      </g>`,
      )}
    </svg><${Numbers} title=${title} bars=${bars} format=${format} /></figure>`;
}

/** Rows by name, the largest first. @param {{title: string, bars: Bar[], format?: (n: number) => string}} props */
export function Rows({ title, bars, format = money }) {
  const most = Math.max(...bars.map((bar) => bar.value), 0.0001);
  const shown = [...bars].sort((one, other) => other.value - one.value).slice(0, 12);
  return html`<figure class="plot"><figcaption>${title}</figcaption>
    <div class="rows" role="list">${shown.map(
      (bar) => html`
      <div class="bar-row" role="listitem">
        <span class="bar-name" title=${bar.name}>${bar.name}</span>
        <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
          <rect class="track" width="100" height="10" rx="1.5" /><rect class="bar"
          width=${Math.max((bar.value / most) * 100, bar.value > 0 ? 0.5 : 0)} height="10" rx="1.5" /></svg>
        <span class="bar-value">${format(bar.value)}</span>
        <span class="bar-detail dim">${bar.detail ?? ''}</span>
      </div>`,
    )}
    ${!shown.length && html`<p class="dim">Nothing yet.</p>`}</div></figure>`;
}

/** How much of a budget is used. @param {{name: any, used: number, most: number}} props */
export function Budget({ name, used, most }) {
  const part = most > 0 ? Math.min(used / most, 1) : 1;
  const look = part >= 1 ? 'over' : part >= 0.8 ? 'near' : '';
  return html`<div class="bar-row budget">
    <span class="bar-name">${name}</span>
    <svg viewBox="0 0 100 10" preserveAspectRatio="none" role="img"
      aria-label=${`${Math.round(part * 100)} percent of the budget`}>
      <rect class="track" width="100" height="10" rx="1.5" /><rect class=${`bar ${look}`} width=${part * 100}
      height="10" rx="1.5" /></svg>
    <span class="bar-value">${money(used)}</span><span class="bar-detail dim">of ${money(most)}</span></div>`;
}
