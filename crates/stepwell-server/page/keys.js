// @ts-check
// The keyboard: what each key does, and the list of them.
import { html, useLayoutEffect } from './html.js';
import { Dialog } from './parts.js';

/** @type {[string, [string, string][]][]} */
export const KEYS = [
  [
    'Everywhere',
    [
      ['?', 'This list'],
      ['/', 'Search all sessions'],
      ['g i', 'Inbox'],
      ['g s', 'Sessions'],
      ['g n', 'Start a run'],
      ['g c', 'Cost'],
      ['g h', 'Health'],
      ['g t', 'Trash'],
      ['Ctrl+Z', 'Undo what was just done'],
      ['Esc', 'Close what is open'],
    ],
  ],
  [
    'Lists',
    [
      ['j, k', 'Next, previous'],
      ['Enter', 'Open'],
      ['Tab', 'To the buttons of a session'],
    ],
  ],
  [
    'Questions',
    [
      ['j, k', 'Next, previous'],
      ['Tab', 'To the answers'],
      ['←, →', 'From answer to answer'],
      ['Enter', 'Give the answer that has the focus'],
      ['text', 'At an answer: deny, with this as the reason'],
    ],
  ],
  [
    'Session',
    [
      ['o', 'Unfold or fold all tool calls'],
      ['c', 'Conversation'],
      ['t', 'Time travel'],
      ['v', 'Compare'],
    ],
  ],
  [
    'Time travel',
    [
      ['[, ]', 'Previous, next mark'],
      ['←, →', 'One event (on the slider)'],
    ],
  ],
];

/** @param {{onClose: () => void}} props */
export function KeyHelp({ onClose }) {
  return html`<${Dialog} title="Keys" onClose=${onClose} wide=${true}>
    <div class="key-groups">${KEYS.map(
      ([name, keys]) => html`
      <section><h3>${name}</h3><dl class="keys">${keys.map(([key, what]) => html`<div><dt><kbd>${key}</kbd></dt><dd>
        ${what}</dd></div>`)}</dl></section>`,
    )}
    </div>
    <p class="dim">A letter or a digit changes nothing. Buttons do: by mouse, or with Tab and Enter.</p>
  <//>`;
}

/** Is a text field focused, or a dialog open? @param {KeyboardEvent} event */
function isTaken(event) {
  if (event.altKey || event.defaultPrevented) return true;
  const target = /** @type {HTMLElement} */ (event.target);
  if (target.closest('input, textarea, select, [contenteditable]')) {
    return !(target instanceof HTMLInputElement && target.type === 'range');
  }
  return Boolean(document.querySelector('dialog[open]'));
}

/**
 * Listens to keys while a component exists, from the moment it is drawn, so that no key is
 * lost, however early it comes.
 * @param {Record<string, (event: KeyboardEvent) => void>} handlers by key; `g i` is a sequence, `Ctrl+z` is held
 * @param {any[]} depends
 */
export function useKeys(handlers, depends) {
  useLayoutEffect(() => {
    let led = 0;
    const listener = (/** @type {KeyboardEvent} */ event) => {
      if (isTaken(event)) return;
      const key = event.ctrlKey || event.metaKey ? `Ctrl+${event.key}` : event.key;
      const isSecond = Date.now() - led < 1500;
      const name = isSecond && handlers[`g ${key}`] ? `g ${key}` : key;
      led = key === 'g' ? Date.now() : 0;
      // The second key of a sequence is not a key of its own.
      if (isSecond && name === key) return;
      const handle = handlers[name];
      if (!handle) return;
      event.preventDefault();
      handle(event);
    };
    document.addEventListener('keydown', listener);
    return () => document.removeEventListener('keydown', listener);
  }, depends);
}

/** Moves the focus among elements. @param {string} selector @param {number} by */
export function moveFocus(selector, by) {
  const all = /** @type {HTMLElement[]} */ ([...document.querySelectorAll(selector)]);
  if (!all.length) return;
  const now = all.findIndex((it) => it.contains(document.activeElement));
  const next = now < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(now + by, 0), all.length - 1);
  all[next].focus();
  all[next].scrollIntoView({ block: 'nearest' });
}

/** The element of a list that has the focus. @param {string} selector */
export function focused(selector) {
  return /** @type {HTMLElement | null} */ (document.activeElement?.closest(selector) ?? null);
}
