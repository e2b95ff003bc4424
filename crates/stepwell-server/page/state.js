// @ts-check
// The state of the whole page: login, stores, open questions.
import { useEffect, useRef, useState } from './html.js';
import { get } from './api.js';

/**
 * @typedef {{key: string, name: string, workspace: string, home: boolean, problem?: string}} Store
 * @typedef {{store: Store, problem: any}} Failed a store that did not answer, and why
 * @typedef {{session_id: string, id: string, prompt: string, asked_at: string, default?: string,
 *   deadline?: string, asker?: string, task?: string, store: string, seq: number,
 *   offers?: {choice: string, label: string}[],
 *   call?: {tool: string, effect: string, arguments: string, detail?: string, choices?: string[], holds_secret?: boolean}}} Gate
 */

export const state = {
  /** @type {any} */ server: null,
  /** @type {Store[]} */ stores: [],
  /** The longest waiting first, so that a new one does not move the others. @type {Gate[]} */ gates: [],
  /** Stores whose questions are unknown. @type {Failed[]} */ silent: [],
  /** Is the server reachable? */ online: true,
  /** Is a login required? */ login: false,
  /** The colours: auto, light or dark. */ theme: 'auto',
};

/** @type {Set<() => void>} */
const listeners = new Set();

/** @param {Partial<typeof state>} patch */
export function update(patch) {
  Object.assign(state, patch);
  listeners.forEach((listener) => listener());
}

/** The state, for a component that is redrawn when it changes. */
export function useApp() {
  const [, draw] = useState(0);
  useEffect(() => {
    const listener = () => draw((n) => n + 1);
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, []);
  return state;
}

/** The default store. */
export function homeStore() {
  return state.stores.find((store) => store.home) ?? state.stores[0];
}

/** A store's short name: the last part of its workspace. @param {string} key */
export function storeName(key) {
  const store = state.stores.find((it) => it.key === key);
  if (!store) return key;
  const parts = (store.workspace || store.name).split('/').filter(Boolean);
  return parts[parts.length - 1] ?? store.name;
}

/** Is a log intact, and does its session's head follow from it? @param {any} verdict */
export function isAsRecorded(verdict) {
  return Boolean(verdict.sound && verdict.head_is_right);
}

/** Requests the login and the list of stores. */
export async function loadServer() {
  const [server, stores] = await Promise.all([get('/server'), get('/stores')]);
  update({ server, stores: stores.items, online: true, login: false });
}

/**
 * Requests something from every store. A failing store does not hide the others. A missing login or
 * server is an error.
 * @template T
 * @param {Store[]} stores @param {(store: Store) => Promise<T>} ask
 * @returns {Promise<{answers: T[], failed: Failed[]}>}
 */
export async function askStores(stores, ask) {
  const settled = await Promise.allSettled(
    stores.map((store) => (store.problem ? Promise.reject(new Error(store.problem)) : ask(store))),
  );
  /** @type {T[]} */ const answers = [];
  /** @type {Failed[]} */ const failed = [];
  settled.forEach((it, n) => {
    if (it.status === 'fulfilled') answers.push(it.value);
    else failed.push({ store: stores[n], problem: it.reason });
  });
  const whole = failed.find(({ problem }) => problem.kind === 'offline' || problem.status === 401 || problem.name === 'AbortError');
  if (whole) throw whole.problem;
  return { answers, failed };
}

let asked = 0;
let loaded = 0;
/** Questions that were answered here: a pending list may still have them. @type {Set<string>} */
const answered = new Set();

/** The key of a question. A repeated question has another key. @param {Gate} gate */
export function gateName(gate) {
  return `${gate.store} ${gate.session_id} ${gate.id} ${gate.seq}`;
}

/** Removes an answered question from the list. @param {Gate} gate */
export function dropGate(gate) {
  answered.add(gateName(gate));
  update({ gates: state.gates.filter((it) => !answered.has(gateName(it))) });
}

/** Requests the open questions of every store. If answers overtake each other, the newest request counts. */
export async function loadGates() {
  asked += 1;
  const turn = asked;
  const { answers, failed } = await askStores(state.stores, async (store) => {
    const list = await get('/gates', { store: store.key });
    return list.items.map((/** @type {any} */ gate) => ({ ...gate, store: store.key }));
  });
  if (turn < loaded) return;
  loaded = turn;
  const gates = answers.flat().filter((gate) => !answered.has(gateName(gate)));
  gates.sort((one, other) => Date.parse(one.asked_at) - Date.parse(other.asked_at));
  update({ gates, silent: failed });
}

/** @type {Set<() => void>} */
const changes = new Set();

/** Calls back when sessions changed. @param {() => void} callback */
export function onChange(callback) {
  changes.add(callback);
  return () => changes.delete(callback);
}

/** Notifies that sessions changed. */
export function announceChange() {
  changes.forEach((callback) => callback());
}

/** The pause before a failed request is repeated. */
const RETRY = 2000;

/**
 * Retries if the server, or its store, was unreachable. Returns a function that ends that.
 * @param {any} problem @param {() => void} again
 */
export function retryOffline(problem, again) {
  if (problem?.kind !== 'offline' && problem?.status !== 503) return undefined;
  const timer = setTimeout(again, RETRY);
  return () => clearTimeout(timer);
}

/**
 * Loads something, and again whenever what it depends on changes.
 * @param {(signal: AbortSignal) => Promise<any>} load
 * @param {any[]} depends
 * @param {{live?: boolean}} [options] live: also when sessions change
 */
export function useLoad(load, depends, options = {}) {
  const [result, set] = useState(
    /** @type {{data: any, problem: any, loading: boolean}} */ ({ data: null, problem: null, loading: true }),
  );
  const [turn, again] = useState(0);
  const under = useRef({ way: false, stale: false });
  useEffect(() => {
    const cancel = new AbortController();
    const now = { way: true, stale: false };
    under.current = now;
    set((it) => ({ ...it, loading: true }));
    const done = (/** @type {(it: any) => any} */ next) => {
      if (cancel.signal.aborted) return;
      now.way = false;
      set(next);
      if (now.stale) again((n) => n + 1);
    };
    load(cancel.signal).then(
      (data) => done(() => ({ data, problem: null, loading: false })),
      (problem) => done((it) => ({ ...it, problem, loading: false })),
    );
    return () => cancel.abort();
  }, [...depends, turn]);
  // A pending request is not replaced, or nothing would arrive while sessions change all the time.
  const reload = () => {
    if (under.current.way) under.current.stale = true;
    else again((n) => n + 1);
  };
  useEffect(() => retryOffline(result.problem, reload), [result.problem]);
  useEffect(() => (options.live ? onChange(reload) : undefined), [options.live]);
  return { ...result, reload };
}
