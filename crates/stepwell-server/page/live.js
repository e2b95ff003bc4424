// @ts-check
// Streams of the server. A stream that breaks is opened again where it ended, so that nothing is
// missed and nothing comes twice.
import { address, get, sessionPath } from './api.js';

const FIRST_PAUSE = 300;
const LONGEST_PAUSE = 5000;
/** Events that come close together are handed on at once. */
const GATHER = 40;

/**
 * Keeps an EventSource open.
 * @param {() => string} where the address to open, asked for each time
 * @param {Record<string, (data: any) => void>} handlers by the name of the event
 * @param {(up: boolean) => void} onLink
 */
function keepOpen(where, handlers, onLink) {
  /** @type {EventSource | null} */ let source = null;
  let pause = FIRST_PAUSE;
  let timer = 0;
  let closed = false;
  const open = () => {
    if (closed) return;
    clearTimeout(timer);
    source?.close();
    const mine = new EventSource(where());
    source = mine;
    mine.onopen = () => {
      pause = FIRST_PAUSE;
      onLink(true);
    };
    for (const [name, handle] of Object.entries(handlers)) {
      mine.addEventListener(name, (event) => {
        if (source === mine) handle(JSON.parse(/** @type {MessageEvent} */ (event).data));
      });
    }
    mine.onerror = () => {
      if (source !== mine) return;
      mine.close();
      source = null;
      onLink(false);
      // An EventSource does not say why it failed. A plain request does: it may be the login.
      get('/server').catch(() => undefined);
      timer = setTimeout(open, pause);
      pause = Math.min(pause * 2, LONGEST_PAUSE);
    };
  };
  const hurry = () => {
    if (!source) {
      pause = FIRST_PAUSE;
      open();
    }
  };
  window.addEventListener('online', hurry);
  window.addEventListener('stepwell-login', hurry);
  open();
  return {
    reopen: open,
    close: () => {
      closed = true;
      clearTimeout(timer);
      source?.close();
      window.removeEventListener('online', hurry);
      window.removeEventListener('stepwell-login', hurry);
    },
  };
}

/**
 * Follows a session behind an event.
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
  const stream = keepOpen(
    () => address(sessionPath(which.id, '/stream'), { store: which.store, from: last + 1 }),
    {
      recorded: (event) => {
        if (event.seq <= last) return;
        // A gap cannot be: whoever sees one begins again where it was whole.
        if (event.seq > last + 1) {
          stream.reopen();
          return;
        }
        last = event.seq;
        gathered.push(event);
        timer ||= setTimeout(flush, GATHER);
      },
      // What is being said, and on no record yet. What was recorded before it goes first.
      delta: (piece) => {
        flush();
        to.onPiece(piece);
      },
      info: (session) => {
        flush();
        to.onInfo(session);
      },
      gone: () => {
        stream.close();
        to.onGone();
      },
    },
    to.onLink,
  );
  return () => {
    clearTimeout(timer);
    stream.close();
  };
}

/**
 * Watches which sessions of a store change, or of all of them.
 * @param {string} store its key, or `*`
 * @param {() => void} onChanged called for many changes at once
 * @param {(up: boolean) => void} onLink
 */
export function watchChanges(store, onChanged, onLink) {
  let timer = 0;
  const told = () => {
    timer ||= setTimeout(() => {
      timer = 0;
      onChanged();
    }, 150);
  };
  let wasDown = false;
  const stream = keepOpen(
    () => address('/changes', { store }),
    { changed: told, reset: told },
    (up) => {
      if (up && wasDown) told();
      wasDown = !up;
      onLink(up);
    },
  );
  return () => {
    clearTimeout(timer);
    stream.close();
  };
}
