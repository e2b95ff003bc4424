// @ts-check
// Search as you type, over all stores.
import { html, useEffect, useRef, useState } from './html.js';
import { get } from './api.js';
import { useKeys } from './keys.js';
import { Age } from './parts.js';
import { go, toSession } from './route.js';
import { askStores, storeName, useApp } from './state.js';
import { highlight, words } from './text.js';

/** How long to wait for the next letter. */
const PAUSE = 160;

export function Search() {
  const app = useApp();
  const [text, setText] = useState('');
  const [hits, setHits] = useState(/** @type {any[] | null} */ (null));
  const [chosen, choose] = useState(0);
  const [open, setOpen] = useState(false);
  const [failed, setFailed] = useState('');
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  useKeys(
    {
      '/': () => {
        input.current?.focus();
        input.current?.select();
      },
    },
    [],
  );
  useEffect(() => {
    setFailed('');
    if (!/[\p{L}\p{N}]/u.test(text)) {
      setHits(null);
      return undefined;
    }
    const cancel = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const { answers, failed } = await askStores(app.stores, async (store) => {
          const list = await get('/search', { store: store.key, q: text, limit: 20 }, cancel.signal);
          return list.items.map((/** @type {any} */ hit) => ({ ...hit, store: store.key }));
        });
        setFailed(failed.map((it) => `${storeName(it.store.key)} was not searched: ${it.problem.message}`).join(' '));
        setHits(
          answers
            .flat()
            .sort((one, other) => Date.parse(other.at) - Date.parse(one.at))
            .slice(0, 40),
        );
        choose(0);
      } catch (problem) {
        if (!cancel.signal.aborted) setFailed(/** @type {Error} */ (problem).message);
      }
    }, PAUSE);
    return () => {
      clearTimeout(timer);
      cancel.abort();
    };
  }, [text, app.stores.length]);
  useEffect(() => {
    const outside = (/** @type {Event} */ event) => {
      if (!box.current?.contains(/** @type {Node} */ (event.target))) setOpen(false);
    };
    document.addEventListener('pointerdown', outside);
    document.addEventListener('focusin', outside);
    return () => {
      document.removeEventListener('pointerdown', outside);
      document.removeEventListener('focusin', outside);
    };
  }, []);
  const pick = (/** @type {any} */ hit) => {
    setOpen(false);
    input.current?.blur();
    go(toSession(hit.store, hit.session, '', { seq: hit.seq }));
  };
  const key = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === 'Escape') {
      setOpen(false);
      input.current?.blur();
    }
    if (!hits?.length) return;
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      const next = Math.min(Math.max(chosen + (event.key === 'ArrowDown' ? 1 : -1), 0), hits.length - 1);
      choose(next);
      document.getElementById(`hit-${next}`)?.scrollIntoView({ block: 'nearest' });
    }
    if (event.key === 'Enter') pick(hits[chosen]);
  };
  const shown = open && (hits !== null || failed);
  return html`<search class="search" ref=${box}>
    <input ref=${input} type="search" role="combobox" aria-label="Search all sessions" placeholder="Search (press /)"
      autocomplete="off" spellcheck=${false}
      aria-expanded=${Boolean(shown)} aria-controls="hits"
        aria-activedescendant=${shown && hits?.length ? `hit-${chosen}` : undefined}
      value=${text} onFocus=${() => setOpen(true)} onInput=${(/** @type {any} */ event) => {
        setText(event.target.value);
        setOpen(true);
      }} onKeyDown=${key} />
    <div id="hits" class="hits" role="listbox" aria-label="Hits" hidden=${!shown}>
      ${failed && html`<p class="dim">${failed}</p>`}
      ${hits?.length === 0 && html`<p class="dim" role="option" aria-selected="false">Nothing was found.</p>`}
      ${hits?.map(
        (
          hit,
          n,
        ) => html`<div class=${`hit ${n === chosen ? 'chosen' : ''}`} role="option" id=${`hit-${n}`}
          aria-selected=${n === chosen}
          onPointerDown=${(/** @type {Event} */ event) => event.preventDefault()} onClick=${() => pick(hit)}>
        <div class="hit-text" dir="auto">${highlight(hit.text, hit.matches).map((part) => (part.hit ? html`<mark>
          ${part.text}</mark>` : part.text))}</div>
        <div class="dim">${words(hit.kind)} ${hit.seq} · ${hit.session}${app.stores.length > 1 ? ` · ${storeName(hit.store)}` : ''} · <${Age}
          at=${hit.at} /></div>
      </div>`,
      )}
    </div></search>`;
}
