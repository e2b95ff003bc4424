// @ts-check
// Events that the server sends. All tabs of a browser share one stream, which the hub keeps
// open. A broken stream is resumed where it ended, so that no event is missed or repeated.
import { get, onKeyChange, pageKey } from './api.js';
import { Hub } from './hub.js';
import { state } from './state.js';

/**
 * @typedef {import('./hub.js').Told} Told
 * @typedef {{store: string, id: string, next: () => number, take: (told: Told) => void}} Followed
 */

/** Events that arrive close together are delivered together. */
const GATHER = 40;
/** The hub forwards the server's keep-alive every 15 seconds. A hub that is silent for longer was ended. */
const SILENCE = 90_000;

/** Sessions that this tab follows. @type {Set<Followed>} */
const followed = new Set();
/** @type {Set<(told: Told) => void>} */
const listeners = new Set();
/** @type {{postMessage: (wish: import('./hub.js').Wish) => void} | null} */
let port = null;
let silence = 0;

/** The shared worker's port; null in a browser without shared workers. */
function sharedPort() {
  if (!('SharedWorker' in window)) return null;
  // The page's policy allows no text as a script's URL except this one.
  workers ??= /** @type {any} */ (window).trustedTypes?.createPolicy('stepwell', { createScriptURL: () => '/hub.js' });
  const where = workers?.createScriptURL('') ?? '/hub.js';
  // Tabs of an earlier version keep their own worker.
  const worker = new SharedWorker(where, { type: 'module', name: `stepwell ${state.server?.version}` });
  worker.onerror = () => connect(ownPort());
  worker.port.onmessage = ({ data }) => told(data);
  return worker.port;
}
/** @type {any} */ let workers;

/** A hub for this tab alone. In a browser without shared workers, as on some phones, only the visible tab streams. */
function ownPort() {
  const hub = new Hub();
  const mine = { postMessage: told };
  const wish = (/** @type {import('./hub.js').Wish} */ it) => hub.wish(mine, it);
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) wish(null);
    else tell();
  });
  return { postMessage: wish };
}

/** @param {typeof port} to */
function connect(to) {
  port = to;
  tell();
}

/** Sends this tab's complete request to the hub. */
function tell() {
  if (!listeners.size && !followed.size) return;
  port ??= sharedPort() ?? ownPort();
  const follow = [...followed].map(({ store, id, next }) => ({ store, id, from: next() }));
  port.postMessage({ key: pageKey(), follow });
  heard();
}

function heard() {
  clearTimeout(silence);
  silence = setTimeout(() => {
    port?.postMessage(null);
    port = null;
    tell();
  }, SILENCE);
}

/** @param {Told} it */
function told(it) {
  heard();
  // A failed stream does not show the reason, but a request does: the login may be over.
  if (it.status === 401) get('/server').catch(() => undefined);
  for (const listener of [...listeners]) listener(it);
  for (const one of [...followed])
    if (it.up !== undefined || (it.store === one.store && it.session === one.id)) one.take(it);
}

window.addEventListener('online', tell);
window.addEventListener('pageshow', (event) => event.persisted && tell());
window.addEventListener('pagehide', () => port?.postMessage(null));
onKeyChange(tell);

/**
 * Follows a session after an event.
 * @param {{store: string, id: string, after: number}} which
 * @param {{onEvents: (events: any[]) => void, onPiece: (piece: any) => void, onInfo: (session: any) => void, onGone: () => void, onLink: (up: boolean) => void}} to
 */
export function followSession(which, to) {
  let last = which.after;
  /** @type {any[]} */ let gathered = [];
  let timer = 0;
  const flush = () => {
    clearTimeout(timer);
    timer = 0;
    const events = gathered;
    gathered = [];
    if (events.length) to.onEvents(events);
  };
  /** @type {Record<string, (data: any) => void>} */
  const handlers = {
    recorded: (event) => {
      if (event.seq <= last) return;
      // There should be no gap. If there is one, the session is requested again from before it.
      if (event.seq > last + 1) {
        tell();
        return;
      }
      last = event.seq;
      gathered.push(event);
      timer ||= setTimeout(flush, GATHER);
    },
    // A live piece that is not recorded yet. Earlier recorded events go first.
    delta: (piece) => {
      flush();
      to.onPiece(piece);
    },
    info: (session) => {
      flush();
      to.onInfo(session);
    },
    gone: () => {
      followed.delete(mine);
      to.onGone();
    },
  };
  /** @type {Followed} */
  const mine = {
    ...which,
    next: () => last + 1,
    take: ({ up, name = '', data }) => (up === undefined ? handlers[name]?.(data) : to.onLink(up)),
  };
  followed.add(mine);
  tell();
  return () => {
    clearTimeout(timer);
    followed.delete(mine);
    tell();
  };
}

/**
 * Watches which sessions change, in any store.
 * @param {() => void} onChanged called for many changes at once
 * @param {(up: boolean) => void} onLink
 */
export function watchChanges(onChanged, onLink) {
  let timer = 0;
  let wasDown = false;
  const changed = () => {
    timer ||= setTimeout(() => {
      timer = 0;
      onChanged();
    }, 150);
  };
  const listener = (/** @type {Told} */ { up, name }) => {
    if (name === 'changed' || name === 'reset') changed();
    if (up === undefined) return;
    if (up && wasDown) changed();
    wasDown = !up;
    onLink(up);
  };
  listeners.add(listener);
  tell();
  return () => {
    clearTimeout(timer);
    listeners.delete(listener);
  };
}
