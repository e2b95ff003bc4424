// @ts-check
// The one stream of a browser. A browser opens six connections to a server, so its tabs share a
// stream: this runs in a shared worker, or in the tab itself without one. It only forwards
// events: each tab knows its last event, and requests the rest from there.

/**
 * @typedef {{store: string, id: string, from: number}} Follow a session, and the first requested event
 * @typedef {{key: string, follow: Follow[]} | null} Wish a tab's request; null when the tab closes
 * @typedef {{up?: boolean, status?: number, name?: string, store?: string, session?: string, data?: any}} Told
 * @typedef {{postMessage: (told: Told) => void}} Port
 */

const FIRST_PAUSE = 300;
const LONGEST_PAUSE = 5000;
/** Tabs that open together share the first stream. */
const GATHER = 30;
/** The server sends a keep-alive every 15 seconds. A stream that is silent for longer is broken. */
const SILENCE = 40_000;

/** Reads server-sent events. An event without a name is a keep-alive. @param {ReadableStream<Uint8Array>} body @param {(name: string, data: any) => void} onEvent @param {() => void} onBytes */
async function read(body, onEvent, onBytes) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    onBytes();
    const frames = (rest + decoder.decode(value, { stream: true })).split('\n\n');
    rest = frames.pop() ?? '';
    for (const frame of frames) {
      const fields = new Map(frame.split('\n').map((line) => [line.split(':', 1)[0], line.slice(line.indexOf(':') + 2)]));
      onEvent(fields.get('event') ?? '', JSON.parse(fields.get('data') ?? 'null'));
    }
  }
}

export class Hub {
  /** The requests of the tabs. @type {Map<Port, {follow: Map<string, Follow>}>} */ #tabs = new Map();
  /** @type {AbortController | null} */ #open = null;
  #timer = 0;
  #silence = 0;
  #pause = FIRST_PAUSE;
  #up = false;
  #key = '';

  /** Stores a tab's request. @param {Port} port @param {Wish} wish */
  wish(port, wish) {
    if (!wish) {
      this.#tabs.delete(port);
      if (!this.#tabs.size) this.#close();
      return;
    }
    const isNew = !this.#tabs.has(port);
    const isOtherKey = wish.key !== this.#key;
    this.#key = wish.key;
    this.#tabs.set(port, { follow: new Map(wish.follow.map((it) => [`${it.store}/${it.id}`, it])) });
    // A session that is already followed has new events since: the stream restarts from the tab's position.
    if (!this.#open || isOtherKey || wish.follow.length) this.#later(GATHER);
    else if (isNew) port.postMessage({ up: this.#up });
  }

  /** Reopens the stream after a pause, unless that happens earlier. @param {number} pause */
  #later(pause) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#begin(), pause);
  }

  #close() {
    clearTimeout(this.#timer);
    clearTimeout(this.#silence);
    this.#open?.abort();
    this.#open = null;
    this.#up = false;
  }

  /** @param {Told} told */
  #tell(told) {
    for (const port of this.#tabs.keys()) port.postMessage(told);
  }

  /** The URL for all requests, from the first event that any tab lacks. */
  #address() {
    /** @type {Map<string, number>} */ const wanted = new Map();
    for (const { follow } of this.#tabs.values())
      for (const [name, { from }] of follow) wanted.set(name, Math.min(from, wanted.get(name) ?? from));
    const follows = [...wanted].map(([name, from]) => `&follow=${encodeURIComponent(`${name}/${from}`)}`);
    return `/api/v1/changes?store=*${follows.join('')}`;
  }

  async #begin() {
    const mine = new AbortController();
    this.#open?.abort();
    this.#open = mine;
    const heard = () => {
      clearTimeout(this.#silence);
      this.#silence = setTimeout(() => mine.abort(), SILENCE);
    };
    let status = 0;
    try {
      heard();
      const headers = { 'X-Stepwell-Key': this.#key };
      const answer = await fetch(this.#address(), { headers, signal: mine.signal, cache: 'no-store' });
      status = answer.status;
      if (answer.ok && answer.body) {
        this.#pause = FIRST_PAUSE;
        this.#up = true;
        this.#tell({ up: true });
        await read(answer.body, (name, data) => this.#open === mine && this.#pass(name, data), heard);
      }
    } catch {
      // It broke, or was replaced.
    }
    if (this.#open !== mine) return;
    this.#close();
    this.#tell({ up: false, status });
    if (!this.#tabs.size) return;
    this.#later(this.#pause);
    this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE);
  }

  /** Passes an event on to the tabs that want it. @param {string} name @param {any} data */
  #pass(name, data) {
    if (!name || name === 'changed' || name === 'reset') {
      this.#tell({ name, data });
      return;
    }
    const session = `${data.store}/${data.session}`;
    if (name === 'lost') this.#later(LONGEST_PAUSE);
    for (const [port, { follow }] of this.#tabs) {
      const wanted = follow.get(session);
      if (!wanted) continue;
      if (name === 'recorded') {
        if (data.data.seq < wanted.from) continue;
        wanted.from = data.data.seq + 1;
      }
      port.postMessage({ name, ...data });
    }
  }
}

// In a shared worker, tabs connect.
if ('SharedWorkerGlobalScope' in globalThis) {
  const hub = new Hub();
  /** @type {any} */ (globalThis).onconnect = (/** @type {MessageEvent} */ event) => {
    const [port] = event.ports;
    port.onmessage = ({ data }) => hub.wish(port, data);
  };
}
