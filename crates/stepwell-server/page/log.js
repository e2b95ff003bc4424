// @ts-check
// A session's log: its loaded part, and new events. The loaded part never has gaps.
import { get, sessionPath } from './api.js';
import { Conversation } from './conversation.js';
import { followSession } from './live.js';

/** How many events are loaded at once. */
const PAGE = 400;

/**
 * @typedef {import('./conversation.js').Recorded} Recorded
 * @typedef {{lane: string, text: string, thinking: string}} Speech
 * @typedef {{onChange: () => void, onInfo: (session: any) => void, onGone: () => void, onLink: (up: boolean) => void}} Listener
 */

export class SessionLog {
  #store;
  #id;
  #listener;
  /** @type {Recorded[]} */ #events = [];
  /** @type {(() => void) | null} */ #stop = null;
  #closed = false;
  /** The last answer on record, by lane. @type {Map<string, number>} */ #answered = new Map();
  #drawing = 0;

  /** @param {string} store @param {string} id @param {Listener} listener */
  constructor(store, id, listener) {
    this.#store = store;
    this.#id = id;
    this.#listener = listener;
    this.talk = new Conversation();
    /** The current answers, by lane. @type {Map<string, Speech>} */
    this.speaking = new Map();
    /** Changes with every piece of an answer. */
    this.heard = 0;
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

  /** Loads the end, or the part around an event. @param {number | undefined} wanted */
  async load(wanted) {
    const list = await this.#read(wanted ? { from: Math.max(wanted - PAGE / 4, 1) } : { order: 'newest' });
    if (this.#closed) return;
    this.#events = wanted ? list.items : list.items.reverse();
    this.talk.add(this.#events);
    this.#note(this.#events);
    this.ready = true;
    this.#reached(!wanted || !list.next);
  }

  /** Loads earlier events. */
  async earlier() {
    const list = await this.#read({ order: 'newest', to: this.first - 1 });
    this.#events = [...list.items.reverse(), ...this.#events];
    this.talk = new Conversation().add(this.#events);
    this.#listener.onChange();
  }

  /** Loads later events, if the end is not loaded. */
  async later() {
    const list = await this.#read({ from: this.last + 1 });
    this.#take(list.items);
    this.#reached(!list.next);
  }

  close() {
    this.#closed = true;
    cancelAnimationFrame(this.#drawing);
    this.#stop?.();
  }

  /** @param {Recorded[]} events */
  #take(events) {
    this.#events.push(...events);
    this.talk.add(events);
    this.#note(events);
  }

  /** Notes complete answers, which replace their pieces. @param {Recorded[]} events */
  #note(events) {
    for (const { kind, seq, body } of events) {
      if (kind !== 'message' || body.role !== 'assistant') continue;
      this.#answered.set(body.lane, seq);
      this.speaking.delete(body.lane);
    }
  }

  /** Adds a piece of an answer. @param {any} piece */
  #hear(piece) {
    const { lane, kind } = piece;
    if ((this.#answered.get(lane) ?? 0) > piece.after) return;
    const speech = this.speaking.get(lane) ?? { lane, text: '', thinking: '' };
    if (kind === 'text') speech.text += piece.text;
    else if (kind === 'thinking') speech.thinking += piece.text;
    else if (kind === 'so_far') Object.assign(speech, { text: piece.text, thinking: piece.thinking });
    else if (kind === 'void') Object.assign(speech, { text: '', thinking: '' });
    else if (kind === 'output') this.talk.output(lane, piece.call, piece.tail);
    if (speech.text || speech.thinking) this.speaking.set(lane, speech);
    else this.speaking.delete(lane);
    this.heard += 1;
    // Pieces arrive faster than anyone reads, so they are drawn once a frame.
    this.#drawing ||= requestAnimationFrame(() => {
      this.#drawing = 0;
      this.#listener.onChange();
    });
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
        onPiece: (piece) => this.#hear(piece),
        onInfo: (session) => {
          // A session that does not run has no current answer.
          if (session.status !== 'running') this.speaking.clear();
          this.#listener.onInfo(session);
        },
        onGone: this.#listener.onGone,
        onLink: (up) => {
          // A current answer is sent again from its beginning.
          if (up) this.speaking.clear();
          this.#listener.onLink(up);
        },
      },
    );
  }
}
