// @ts-check
// A session's log: what is loaded of it, and what comes. Loaded is always one stretch without gaps.
import { get, sessionPath } from './api.js';
import { Conversation } from './conversation.js';
import { followSession } from './live.js';

/** How many events are loaded at once. */
const PAGE = 400;

/**
 * @typedef {import('./conversation.js').Recorded} Recorded
 * @typedef {{onChange: () => void, onInfo: (session: any) => void, onGone: () => void, onLink: (up: boolean) => void}} Listener
 */

export class SessionLog {
  #store;
  #id;
  #listener;
  /** @type {Recorded[]} */ #events = [];
  /** @type {(() => void) | null} */ #stop = null;
  #closed = false;

  /** @param {string} store @param {string} id @param {Listener} listener */
  constructor(store, id, listener) {
    this.#store = store;
    this.#id = id;
    this.#listener = listener;
    this.talk = new Conversation();
    /** Is anything loaded? */
    this.ready = false;
    /** Is the end of the log loaded, so that it is followed? */
    this.isEnd = false;
  }

  get first() {
    return this.#events[0]?.seq ?? 1;
  }

  get last() {
    return this.#events[this.#events.length - 1]?.seq ?? 0;
  }

  /** @param {Record<string, any>} which @returns {Promise<{items: Recorded[], next?: string}>} */
  #read(which) {
    return get(sessionPath(this.#id, '/events'), { store: this.#store, limit: PAGE, ...which });
  }

  /** Loads the end, or what is around an event. @param {number | undefined} wanted */
  async load(wanted) {
    const list = await this.#read(wanted ? { from: Math.max(wanted - PAGE / 4, 1) } : { order: 'newest' });
    if (this.#closed) return;
    this.#events = wanted ? list.items : list.items.reverse();
    this.talk.add(this.#events);
    this.ready = true;
    this.#reached(!wanted || !list.next);
  }

  /** Loads what came before. */
  async earlier() {
    const list = await this.#read({ order: 'newest', to: this.first - 1 });
    this.#events = [...list.items.reverse(), ...this.#events];
    this.talk = new Conversation().add(this.#events);
    this.#listener.onChange();
  }

  /** Loads what came after, if the end is not loaded. */
  async later() {
    const list = await this.#read({ from: this.last + 1 });
    this.#take(list.items);
    this.#reached(!list.next);
  }

  close() {
    this.#closed = true;
    this.#stop?.();
  }

  /** @param {Recorded[]} events */
  #take(events) {
    this.#events.push(...events);
    this.talk.add(events);
  }

  /** @param {boolean} isEnd */
  #reached(isEnd) {
    this.isEnd = isEnd;
    this.#listener.onChange();
    if (!isEnd || this.#stop || this.#closed) return;
    this.#stop = followSession(
      { store: this.#store, id: this.#id, after: this.last },
      {
        onEvents: (events) => {
          this.#take(events);
          this.#listener.onChange();
        },
        onInfo: this.#listener.onInfo,
        onGone: this.#listener.onGone,
        onLink: this.#listener.onLink,
      },
    );
  }
}
