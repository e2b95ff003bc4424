// @ts-check
// Notifications of the browser, if they are switched on.
import { firstLine } from './text.js';

const KEY = 'stepwell-notify';

export function canNotify() {
  return 'Notification' in window;
}

export function isNotifying() {
  return canNotify() && localStorage.getItem(KEY) === 'on' && Notification.permission === 'granted';
}

/** @param {boolean} on */
export async function setNotifying(on) {
  const may = on && (await Notification.requestPermission()) === 'granted';
  localStorage.setItem(KEY, may ? 'on' : 'off');
  return may;
}

/** @type {Set<string> | null} */
let known = null;

/** Tells of questions that are new since the last time. @param {import('./state.js').Gate[]} gates */
export function notify(gates) {
  const names = new Set(gates.map((gate) => `${gate.store} ${gate.session_id} ${gate.id}`));
  const fresh = known ? gates.filter((gate) => !known?.has(`${gate.store} ${gate.session_id} ${gate.id}`)) : [];
  known = names;
  if (!fresh.length || !isNotifying() || document.hasFocus()) return;
  const [first] = fresh;
  const title =
    fresh.length === 1
      ? `${first.call ? `May it use ${first.call.tool}?` : 'An agent asks'}`
      : `${fresh.length} questions wait`;
  const note = new Notification(title, { body: firstLine(first.prompt), tag: 'stepwell', icon: '/icon.svg' });
  note.onclick = () => {
    window.focus();
    window.location.hash = '/inbox';
  };
}
