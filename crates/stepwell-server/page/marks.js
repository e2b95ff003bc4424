// @ts-check
// The marks of a session's log: steps, questions, checkpoints, compactions and rewinds.
import { get, sessionPath } from './api.js';
import { speaker } from './conversation.js';

/** @typedef {{seq: number, at: string, kind: string, name?: string}} Mark */

const KINDS = new Set([
  'message',
  'step',
  'checkpoint',
  'gate',
  'gate_answered',
  'compacted',
  'rewound',
  'undone',
  'status',
  'error',
  'phase',
  'said',
  'node',
]);

/** A name for a mark. @param {any} event */
function nameOf({ kind, body }) {
  switch (kind) {
    case 'checkpoint':
      return body.name;
    case 'status':
      return body.status;
    case 'rewound':
      return `to ${body.to}`;
    case 'phase':
      return body.to;
    case 'node':
      return `${body.key} ${body.state}`;
    default:
      return undefined;
  }
}

/** All marks: requested from the server, or else found in the log. @param {string} store @param {string} id @param {AbortSignal} signal @returns {Promise<Mark[]>} */
export async function loadMarks(store, id, signal) {
  const told = await get(sessionPath(id, '/marks'), { store }, signal).catch(() => null);
  if (told) return told.items;
  const marks = [];
  let from = 1;
  for (;;) {
    const page = await get(sessionPath(id, '/events'), { store, from, limit: 1000 }, signal);
    for (const event of page.items) {
      if (!KINDS.has(event.kind) || (event.kind === 'message' && speaker(event.body) !== 'user')) continue;
      marks.push({ seq: event.seq, at: event.at, kind: event.kind, name: nameOf(event) });
    }
    if (!page.next) return marks;
    from = Number(page.next);
  }
}

/** How marks are drawn: the height of their lines, and whether the keyboard stops at them. */
export const LOOK = /** @type {Record<string, {word: string, tall: number}>} */ ({
  message: { word: 'message of yours', tall: 14 },
  step: { word: 'step', tall: 7 },
  node: { word: 'node', tall: 7 },
  checkpoint: { word: 'checkpoint', tall: 22 },
  gate: { word: 'question', tall: 18 },
  gate_answered: { word: 'answer', tall: 12 },
  compacted: { word: 'compaction', tall: 22 },
  rewound: { word: 'rewind', tall: 22 },
  undone: { word: 'undo', tall: 22 },
  status: { word: 'status', tall: 12 },
  error: { word: 'error', tall: 16 },
  phase: { word: 'phase', tall: 16 },
  said: { word: 'word of yours', tall: 14 },
});
