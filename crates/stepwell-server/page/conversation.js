// @ts-check
// A session's log as a conversation: events in, items out. Knows nothing of the screen.

/**
 * @typedef {{seq: number, at: string, kind: string, body: any}} Recorded
 * @typedef {{id: string, name: string, arguments: string, seq: number, state: string, result?: string,
 *   isError?: boolean, images?: any[], duration?: number, tail?: string, child?: string, files: {path: string, seq: number}[]}} Call
 * @typedef {{seq: number, at: string, type: 'message' | 'note' | 'gate', lane?: string, version: number,
 *   aside?: boolean, role?: string, parts?: any[], calls?: Call[], usage?: any, cost?: any, model?: string,
 *   word?: string, text?: string, body?: any, answer?: any}} Item
 */

/** Kinds that only support other events. */
const SILENT = new Set([
  'tool_started',
  'tool_finished',
  'step',
  'settings',
  'file',
  'gate_answered',
  'task',
  'foreign',
  'record',
  'rewinding',
  'permission',
]);

/** Reads the answer of a gate in words. @param {any} answer */
export function answerWords(answer) {
  if (typeof answer === 'string') return answer;
  if (answer?.allow) return answer.allow.scope === 'once' ? 'approved' : `always allowed`;
  if (answer?.deny)
    return `${answer.deny.never ? 'never allowed' : 'denied'}${answer.deny.reason ? `: ${answer.deny.reason}` : ''}`;
  return JSON.stringify(answer);
}

export class Conversation {
  constructor() {
    /** @type {Item[]} */ this.items = [];
    /** @type {Map<string, Call>} */ this.calls = new Map();
    /** @type {Map<string, Item>} */ this.callItems = new Map();
    /** @type {Map<string, Item>} */ this.gates = new Map();
    /** @type {Map<number, Item>} */ this.said = new Map();
    /** The ranges that rewinds set aside. @type {{from: number, to: number}[]} */ this.aside = [];
    /** The ranges before each move, by its seq. @type {Map<number, {from: number, to: number}[]>} */ this.before =
      new Map();
    /** @type {string | null} */ this.open = null;
    /** @type {Set<string>} */ this.lanes = new Set();
    /** A counter of changes, for redrawing. */
    this.version = 0;
  }

  /** @param {Recorded[]} events */
  add(events) {
    for (const event of events) this.#take(event);
    this.version += 1;
    return this;
  }

  /** @param {Recorded} event */
  #take(event) {
    const { kind, body } = event;
    if (body?.lane) this.lanes.add(body.lane);
    switch (kind) {
      case 'message':
        return this.#message(event);
      case 'tool_started':
        return this.#started(body);
      case 'tool_finished':
        return this.#finished(body);
      case 'file':
        return this.#file(event);
      case 'gate':
        return this.#gate(event);
      case 'gate_answered':
        return this.#answered(event);
      case 'said':
        return this.#words(event);
      case 'rewound':
        this.#rewound(event);
        break;
      case 'undone':
        this.#undone(event);
        break;
      default:
    }
    if (SILENT.has(kind)) return undefined;
    const note = noteOf(event);
    if (note) this.#push({ seq: event.seq, at: event.at, type: 'note', version: 0, body, ...note });
    return undefined;
  }

  /** @param {Item} item */
  #push(item) {
    this.items.push(item);
  }

  /** @param {Recorded} event */
  #message({ seq, at, body }) {
    const results = body.parts
      .filter((/** @type {any} */ part) => part.tool_result)
      .map((/** @type {any} */ part) => part.tool_result);
    for (const result of results) this.#result(result, seq, at, body.lane);
    const parts = body.parts.filter((/** @type {any} */ part) => !part.tool_result && !part.tool_call);
    const calls = body.parts
      .filter((/** @type {any} */ part) => part.tool_call)
      .map((/** @type {any} */ part) => ({
        ...part.tool_call,
        seq,
        state: 'asked',
        files: [],
      }));
    if (body.said) this.items = this.items.filter((item) => item !== this.said.get(body.said));
    if (!parts.length && !calls.length) return;
    /** @type {Item} */
    const item = {
      seq,
      at,
      type: 'message',
      version: 0,
      lane: body.lane,
      role: speaker(body),
      parts,
      calls,
      usage: body.usage,
      cost: body.cost,
      model: body.model,
    };
    for (const call of calls) {
      this.calls.set(`${body.lane} ${call.id}`, call);
      this.callItems.set(`${body.lane} ${call.id}`, item);
    }
    this.#push(item);
  }

  /** Shows the last lines of a running tool. @param {string} lane @param {string} id @param {string} tail */
  output(lane, id, tail) {
    const call = this.#call(lane, id);
    if (call) call.tail = tail;
  }

  /** Finds a call and notes that its item changed. @param {string} lane @param {string} id */
  #call(lane, id) {
    const key = `${lane} ${id}`;
    const item = this.callItems.get(key);
    if (item) item.version += 1;
    return this.calls.get(key);
  }

  /** @param {any} result @param {number} seq @param {string} at @param {string} lane */
  #result(result, seq, at, lane) {
    const call = this.#call(lane, result.call_id);
    if (call) {
      call.result = result.text;
      call.isError = result.is_error;
      call.images = result.images;
      if (call.state === 'asked' || call.state === 'running') call.state = result.is_error ? 'failed' : 'done';
      return;
    }
    // Its call is further up, in a part that is not loaded.
    const alone = {
      id: result.call_id,
      name: 'result',
      arguments: '',
      seq,
      state: result.is_error ? 'failed' : 'done',
      files: [],
      result: result.text,
      isError: result.is_error,
      images: result.images,
    };
    this.#push({ seq, at, type: 'message', version: 0, lane, role: 'assistant', parts: [], calls: [alone] });
  }

  /** @param {any} body */
  #started(body) {
    const call = this.#call(body.lane, body.call_id);
    this.open = `${body.lane} ${body.call_id}`;
    if (!call) return;
    call.state = 'running';
    call.child = body.child;
  }

  /** @param {any} body */
  #finished(body) {
    const call = this.#call(body.lane, body.call_id);
    if (this.open === `${body.lane} ${body.call_id}`) this.open = null;
    if (!call) return;
    call.state = body.outcome;
    call.duration = body.duration_ms;
  }

  /** A file that changes while a call is open belongs to it. @param {Recorded} event */
  #file({ seq, at, body }) {
    const call = this.open ? this.calls.get(this.open) : undefined;
    if (call) {
      call.files.push({ path: body.path, seq });
      const item = this.open ? this.callItems.get(this.open) : undefined;
      if (item) item.version += 1;
      return;
    }
    this.#push({ seq, at, type: 'note', version: 0, word: 'file', text: `${body.path} changed`, body });
  }

  /** @param {Recorded} event */
  #gate({ seq, at, body }) {
    /** @type {Item} */
    const item = { seq, at, type: 'gate', version: 0, body };
    this.gates.set(body.id, item);
    this.#push(item);
  }

  /** @param {Recorded} event */
  #answered({ body, at }) {
    const item = this.gates.get(body.id);
    if (!item) return;
    item.answer = { ...body, at };
    item.version += 1;
  }

  /** @param {Recorded} event */
  #words({ seq, at, body }) {
    /** @type {Item} */
    const item = { seq, at, type: 'note', version: 0, word: 'said', text: body.text, body };
    this.said.set(seq, item);
    this.#push(item);
  }

  /** @param {Recorded} event */
  #rewound({ seq, body }) {
    if (body.scope === 'files') return;
    this.#setAside(seq, [...this.aside, { from: body.to + 1, to: seq - 1 }]);
  }

  /** Restores the state just before the move that is undone. @param {Recorded} event */
  #undone({ seq, body }) {
    const before = this.before.get(body.rewind?.of);
    if (before) this.#setAside(seq, [...before, { from: body.rewind.of + 1, to: seq - 1 }]);
  }

  /** @param {number} seq @param {{from: number, to: number}[]} ranges */
  #setAside(seq, ranges) {
    this.before.set(seq, this.aside);
    this.aside = ranges;
    this.#markAside();
  }

  /** Notes which items a rewind set aside. */
  #markAside() {
    for (const item of this.items) {
      const aside = this.aside.some((range) => item.seq >= range.from && item.seq <= range.to);
      if (aside !== Boolean(item.aside)) {
        item.aside = aside;
        item.version += 1;
      }
    }
  }
}

/** A short line for an event that is not a message. @param {Recorded} event @returns {{word: string, text: string} | null} */
function noteOf({ kind, body }) {
  switch (kind) {
    case 'created':
      return body.origin?.fork
        ? { word: 'fork', text: `forked from ${body.origin.fork.parent} at ${body.origin.fork.at}` }
        : null;
    case 'status':
      if (body.reason === 'user_interrupt') return { word: 'stopped', text: 'by a person' };
      return {
        word: body.status,
        text: [body.reason, body.error]
          .filter(Boolean)
          .map((it) => String(it).replaceAll('_', ' '))
          .join(': '),
      };
    case 'phase':
      return { word: 'phase', text: `${body.from} → ${body.to}` };
    case 'checkpoint':
      return { word: 'checkpoint', text: body.name };
    case 'compacted':
      return {
        word: 'compacted',
        text: `events ${body.from} to ${body.to}: ${body.tokens_before} → ${body.tokens_after} tokens`,
      };
    case 'rewound':
      return { word: 'rewound', text: `to ${body.to} (${body.scope})` };
    case 'undone':
      return { word: 'undone', text: Object.keys(body)[0] ?? '' };
    case 'error':
      return { word: 'error', text: body.message };
    case 'stop_asked':
      return { word: 'stop asked', text: nameOf(body.who) };
    case 'node':
      return { word: `node ${body.state}`, text: body.error ? `${body.key}: ${body.error}` : body.key };
    case 'question':
      return { word: 'question', text: body.answer ? `${body.text} — ${body.answer}` : body.text };
    case 'artifact':
      return { word: 'wrote', text: body.path };
    case 'scrubbed':
      return { word: 'scrubbed', text: body.rule };
    case 'edited':
      return editNote(body);
    default:
      return { word: kind, text: '' };
  }
}

/** The author of a message. A message that a program added in the user's name is not the user's. @param {any} message @returns {string} */
export function speaker(message) {
  return message.role === 'user' && message.author === 'program' ? 'context' : message.role;
}

/** Who did something. @param {any} who */
export function nameOf(who) {
  return typeof who === 'string' ? who : (who?.name ?? '');
}

/** @param {any} body */
function editNote(body) {
  const label = body.label?.set ?? body.label;
  if (typeof label === 'string') return { word: 'renamed', text: label };
  if (body.pinned !== undefined) return { word: body.pinned ? 'pinned' : 'unpinned', text: '' };
  if (body.tag?.length) return { word: 'tagged', text: body.tag.join(', ') };
  if (body.trashed !== undefined) {
    return { word: body.trashed ? 'moved to the trash' : 'taken out of the trash', text: nameOf(body.who) };
  }
  return null;
}
