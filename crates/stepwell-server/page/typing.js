// @ts-check
// Keys at the buttons of a question. Arrows move, Enter presses. Text never presses a button:
// it begins a reason, and a space is text.
import { useRef } from './html.js';

/** Is it a character's key, without a modifier that makes it a command? @param {KeyboardEvent} event */
function isText(event) {
  return [...event.key].length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey;
}

/** Listens to a row of buttons. @param {(text: string) => void} onText called with the first character of a text */
export function useTyping(onText) {
  const latest = useRef(onText);
  latest.current = onText;
  const listener = useRef((/** @type {KeyboardEvent} */ event) => {
    const isDown = event.type === 'keydown';
    if (isText(event)) {
      // Some browsers press a button when the space bar is released.
      event.preventDefault();
      if (isDown && event.key.trim()) latest.current(event.key);
      return;
    }
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!isDown || !step) return;
    event.preventDefault();
    const row = /** @type {HTMLElement} */ (event.currentTarget);
    const all = /** @type {HTMLElement[]} */ ([...row.querySelectorAll('button')]);
    const now = all.findIndex((it) => it === document.activeElement);
    all[Math.min(Math.max(now + step, 0), all.length - 1)]?.focus();
  });
  return listener.current;
}
