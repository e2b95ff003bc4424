// @ts-check
// Notifications of the browser, if they are switched on.
import { gateName } from './state.js';
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
  const isAllowed = on && (await Notification.requestPermission()) === 'granted';
  // Some browsers allow notifications and then refuse to show them, so the first one is shown at once.
  const may = isAllowed && shown('Stepwell tells you here when something waits.', { tag: 'stepwell' }) !== null;
  localStorage.setItem(KEY, may ? 'on' : 'off');
  return may;
}

/** Shows a note; null, where a page may not. @param {string} title @param {NotificationOptions} options */
function shown(title, options) {
  try {
    return new Notification(title, options);
  } catch {
    return null;
  }
}

/** @type {Set<string> | null} */
let known = null;

/** Notifies about questions that are new since the last call. @param {import('./state.js').Gate[]} gates */
export function notify(gates) {
  const names = new Set(gates.map(gateName));
  const fresh = known ? gates.filter((gate) => !known?.has(gateName(gate))) : [];
  known = names;
  if (!fresh.length || !isNotifying() || document.hasFocus()) return;
  const [first] = fresh;
  const title =
    fresh.length === 1
      ? `${first.call ? `May it use ${first.call.tool}?` : 'An agent asks'}`
      : `${fresh.length} questions wait`;
  const note = shown(title, { body: firstLine(first.prompt), tag: 'stepwell', icon: '/icon.svg' });
  if (note) note.onclick = () => {
    window.focus();
    window.location.hash = '/inbox';
  };
}
