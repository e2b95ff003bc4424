// @ts-check
// Requests to the server. Every answer is JSON, every refusal a Problem.

const ROOT = '/api/v1';

/** Why a request was not carried out, as the server says it (RFC 9457). */
export class Problem extends Error {
  /** @param {{title: string, kind: string, status?: number, hint?: string, place?: string}} document */
  constructor(document) {
    super(document.title);
    this.kind = document.kind;
    this.status = document.status ?? 0;
    this.hint = document.hint;
    this.place = document.place;
  }
}

/** @type {Set<() => void>} */
const loggedOut = new Set();

/** Calls back whenever the server says that nobody is logged in. @param {() => void} callback */
export function onLoggedOut(callback) {
  loggedOut.add(callback);
  return () => loggedOut.delete(callback);
}

/**
 * The address of a route.
 * @param {string} path
 * @param {Record<string, string | number | boolean | undefined | null>} [query]
 */
export function address(path, query = {}) {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== '');
  const text = pairs.map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(String(value))}`).join('&');
  return `${ROOT}${path}${text ? `?${text}` : ''}`;
}

/** @param {string} where @param {RequestInit} options */
async function send(where, options) {
  let response;
  try {
    response = await fetch(where, { credentials: 'same-origin', ...options });
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new Problem({
      title: 'The server does not answer.',
      kind: 'offline',
      hint: 'It may be restarting; the page goes on when it is back.',
    });
  }
  if (response.status === 204) return null;
  const body = await response.json().catch(() => null);
  if (response.ok) return body;
  const isLogin = where.startsWith(`${ROOT}/login`);
  if (response.status === 401 && !isLogin) loggedOut.forEach((callback) => callback());
  throw new Problem(
    body ?? { title: `The server answered ${response.status}.`, kind: 'failed', status: response.status },
  );
}

/**
 * Reads.
 * @param {string} path
 * @param {Record<string, any>} [query]
 * @param {AbortSignal} [signal]
 */
export function get(path, query, signal) {
  return send(address(path, query), { signal });
}

/**
 * Changes something. The header tells the server that a page of its own asks; with a key, it is done
 * once however often it is sent.
 * @param {'POST' | 'PATCH' | 'DELETE'} method
 * @param {string} path
 * @param {object} [body]
 * @param {Record<string, any>} [query]
 * @param {string} [key]
 */
export function change(method, path, body = {}, query, key) {
  const headers = {
    'Content-Type': 'application/json',
    'X-Stepwell': '1',
    ...(key ? { 'Idempotency-Key': key } : {}),
  };
  return send(address(path, query), { method, headers, body: JSON.stringify(body) });
}

/** Gives a key for what is sent: the same one until something else is. */
export function keyOf() {
  let last = '';
  let key = '';
  return (/** @type {any} */ sent) => {
    const now = JSON.stringify(sent);
    if (now !== last) [last, key] = [now, crypto.randomUUID()];
    return key;
  };
}

/** The path of a session's route. @param {string} id @param {string} [rest] */
export function sessionPath(id, rest = '') {
  return `/sessions/${encodeURIComponent(id)}${rest}`;
}

/** Has a session go on. @param {string} store @param {string} id @param {{say?: string}} [how] */
export function resumeSession(store, id, how = {}) {
  return change('POST', sessionPath(id, '/resume'), how, { store });
}
