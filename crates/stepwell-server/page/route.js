// @ts-check
// The current place in the page: the part of the URL after '#'.
import { useEffect, useState } from './html.js';

/**
 * @typedef {{name: string, store?: string, id?: string, query: Record<string, string>}} Route
 */

/** Reads an address. @param {string} hash @returns {Route} */
export function parse(hash) {
  const [path, search = ''] = hash.replace(/^#\/?/, '').split('?');
  const parts = path.split('/').map(decode);
  const query = Object.fromEntries(new URLSearchParams(search));
  if (parts[0] === 's' && parts[2]) {
    const screen = parts[3] === 'time' || parts[3] === 'compare' ? parts[3] : 'session';
    return { name: screen, store: parts[1], id: parts[2], query };
  }
  const known = ['inbox', 'sessions', 'start', 'cost', 'health', 'trash'];
  return { name: known.includes(parts[0]) ? parts[0] : 'inbox', query };
}

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * The address of a session's screen.
 * @param {string} store @param {string} id @param {string} [screen] @param {Record<string, any>} [query]
 */
export function toSession(store, id, screen = '', query = {}) {
  return withQuery(`#/s/${encodeURIComponent(store)}/${encodeURIComponent(id)}${screen ? `/${screen}` : ''}`, query);
}

/** @param {string} path @param {Record<string, any>} query */
export function withQuery(path, query) {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== '');
  const text = new URLSearchParams(pairs.map(([key, value]) => [key, String(value)])).toString();
  return text ? `${path}?${text}` : path;
}

/** @param {string} hash */
export function go(hash) {
  window.location.hash = hash.replace(/^#/, '');
}

/** Goes there without a new entry in the browser's history. @param {string} hash */
export function replace(hash) {
  window.history.replaceState(null, '', hash);
  window.dispatchEvent(new Event('hashchange'));
}

/** The present route. @returns {Route} */
export function useRoute() {
  const [hash, set] = useState(window.location.hash);
  useEffect(() => {
    const changed = () => set(window.location.hash);
    window.addEventListener('hashchange', changed);
    return () => window.removeEventListener('hashchange', changed);
  }, []);
  return parse(hash);
}
