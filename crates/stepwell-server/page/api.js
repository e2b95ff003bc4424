// @ts-check
// Requests to the server. Every answer is JSON, every refusal a Problem.

const ROOT = '/api/v1';

/** A failed request, as the server describes it (RFC 9457). */
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

/** Calls back when the server says that the login is missing or over. @param {() => void} callback */
export function onLoggedOut(callback) {
  loggedOut.add(callback);
  return () => loggedOut.delete(callback);
}

/** Where the key of the login is kept. Another port has the cookie of the login, but not this storage. */
const KEY = 'stepwell-key';
/** The key, in a browser without storage. */
let held = '';

/** The key that goes with the cookie of the login. */
export function pageKey() {
  try {
    return window.localStorage.getItem(KEY) ?? held;
  } catch {
    return held;
  }
}

/** Stores the key of a login; an empty one is removed. @param {string} key */
export function keepKey(key) {
  held = key;
  try {
    if (key) window.localStorage.setItem(KEY, key);
    else window.localStorage.removeItem(KEY);
  } catch {
    // Then it lasts as long as the tab is open.
  }
  keyChanged.forEach((callback) => callback());
}

/** @type {Set<() => void>} */
const keyChanged = new Set();

/** Calls back after a login or logout, in this tab or another one. @param {() => void} callback */
export function onKeyChange(callback) {
  keyChanged.add(callback);
}

window.addEventListener('storage', (event) => {
  if (event.key !== KEY && event.key !== null) return;
  // A logout in another tab also clears this one.
  if (pageKey()) keyChanged.forEach((callback) => callback());
  else window.location.replace('/');
});

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

/** Sends a request, and returns the answer. Throws a Problem on failure. @param {string} where @param {RequestInit} options */
async function ask(where, options) {
  let response;
  const headers = { ...options.headers, 'X-Stepwell-Key': pageKey() };
  try {
    response = await fetch(where, { credentials: 'same-origin', ...options, headers });
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new Problem({
      title: 'The server does not answer.',
      kind: 'offline',
      hint: 'It may be restarting; the page goes on when it is back.',
    });
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => null);
  const isLogin = where.startsWith(`${ROOT}/login`);
  if (response.status === 401 && !isLogin) loggedOut.forEach((callback) => callback());
  throw new Problem(
    body ?? { title: `The server answered ${response.status}.`, kind: 'failed', status: response.status },
  );
}

/** Requests JSON. @param {string} where @param {RequestInit} options */
async function send(where, options) {
  const response = await ask(where, options);
  return response.status === 204 ? null : response.json().catch(() => null);
}

/** Downloads a file. A plain link would not send the key. @param {string} path @param {Record<string, any>} [query] */
export async function save(path, query) {
  const response = await ask(address(path, query), {});
  const name = /filename="([^"]+)"/.exec(response.headers.get('Content-Disposition') ?? '')?.[1];
  const link = document.createElement('a');
  link.href = URL.createObjectURL(await response.blob());
  link.download = name ?? 'stepwell';
  link.click();
  // By then the browser has read it.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
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
 * Changes something. The header shows that the request comes from the server's own page. With a key,
 * repeating the request has no further effect.
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

/** Returns a key for a request: the same one while the request is repeated. */
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

/** Resumes a session. @param {string} store @param {string} id @param {{say?: string}} [how] */
export function resumeSession(store, id, how = {}) {
  return change('POST', sessionPath(id, '/resume'), how, { store });
}
