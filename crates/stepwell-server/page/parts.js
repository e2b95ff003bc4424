// @ts-check
// Pieces that several screens use.
import { html, useEffect, useLayoutEffect, useRef, useState } from './html.js';
import { age, bytes, moment, plain, words } from './text.js';

/** A session's status in a word. A session that a person stopped is not "interrupted". @param {any} session */
export function statusWord(session) {
  return session.stopped ? 'stopped' : words(session.status);
}

/** @param {{session: any}} props */
export function Status({ session }) {
  const { status, stopped, stop_reason: reason } = session;
  const why = stopped ? 'stopped by a person' : reason && `stopped: ${words(reason)}`;
  return html`<span class=${`status ${status}`} title=${why || undefined}>
    <span class="dot" aria-hidden="true"></span>${statusWord(session)}</span>`;
}

/** @param {{at: string}} props */
export function Age({ at }) {
  return html`<time datetime=${at} title=${moment(at)}>${age(at)}</time>`;
}

/** A failed request, and what to do about it. @param {{problem: any, retry?: () => void}} props */
export function ProblemNote({ problem, retry }) {
  if (!problem) return null;
  return html`<div class="problem" role="alert">
    <strong>${plain(problem.message ?? String(problem))}</strong>
    ${problem.hint && html`<span> ${plain(problem.hint)}</span>`}
    ${retry && html` <button class="small" onClick=${retry}>Try again</button>`}
  </div>`;
}

/** Which stores did not answer, and why. @param {{failed?: import('./state.js').Failed[]}} props */
export function SilentStores({ failed = [] }) {
  return html`${failed.map(({ store, problem }) => html`<div class="problem" role="alert" key=${store.key}>
    <strong>${plain(store.workspace || store.name)} is not shown: ${plain(problem.message ?? String(problem))}</strong>
    ${problem.hint && html`<span> ${plain(problem.hint)}</span>`}</div>`)}`;
}

/** @param {{title: string, children?: any}} props */
export function Empty({ title, children }) {
  return html`<div class="empty"><p class="empty-title">${title}</p>${children}</div>`;
}

/** A placeholder while something is loading. @param {{what?: string}} props */
export function Loading({ what = 'Loading' }) {
  return html`<p class="loading" role="status">${what}…</p>`;
}

/** How much of a long text is shown at first, and with each further press. */
const FIRST = 12_000;
const MORE = 200_000;

/**
 * Text that may be of any length.
 * @param {{text: string, render?: (text: string) => any, first?: number}} props
 */
export function LongText({ text, render, first = FIRST }) {
  const [most, set] = useState(first);
  const cut = text.length > most ? text.slice(0, most) : text;
  const shown = render ? render(cut) : html`<pre class="plain" dir="auto" tabindex="0">${plain(cut)}</pre>`;
  return html`${shown}${
    text.length > most &&
    html`
    <button class="small more" data-more="yes" onClick=${() => set(most + MORE)}>Show more: ${bytes(most)} of ${bytes(text.length)} are shown</button>`
  }`;
}

/**
 * A dialog over the page. Escape closes it, the focus stays in it and goes back where it was.
 * @param {{title: string, onClose: () => void, children?: any, wide?: boolean}} props
 */
export function Dialog({ title, onClose, children, wide }) {
  const element = useRef(/** @type {HTMLDialogElement | null} */ (null));
  // Opened as it is drawn, so that the next key reaches the dialog, however soon it comes.
  useLayoutEffect(() => {
    const before = /** @type {HTMLElement | null} */ (document.activeElement);
    const dialog = element.current;
    dialog?.showModal();
    const first = /** @type {HTMLElement | null} */ (dialog?.querySelector('[autofocus], input, textarea, select'));
    first?.focus();
    return () => {
      // Elements behind an open dialog cannot take the focus.
      dialog?.close();
      before?.focus?.();
    };
  }, []);
  return html`
    <dialog ref=${element} class=${wide ? 'wide' : ''} aria-label=${title}
      onCancel=${(/** @type {Event} */ event) => {
        event.preventDefault();
        onClose();
      }}>
      <header class="row"><h2>${title}</h2><span class="grow"></span>
        <button class="plain-button" aria-label="Close" onClick=${onClose}>✕</button></header>
      ${children}
    </dialog>`;
}

/**
 * A button that is busy while its work is under way, and shows why it failed.
 * @param {{onPress: () => Promise<any> | void, children?: any, class?: string, disabled?: boolean, waits?: boolean, title?: string, label?: string}} props
 *   waits: it is shown, but cannot be pressed yet
 */
export function Act({ onPress, children, class: look = '', disabled, waits, title, label }) {
  const [busy, set] = useState(false);
  const press = async () => {
    if (busy) return;
    set(true);
    try {
      await onPress();
    } catch (problem) {
      toast({ problem });
    } finally {
      set(false);
    }
  };
  return html`<button type="button" class=${look} title=${title} aria-label=${label} aria-busy=${busy} aria-disabled=${waits ? 'true' : undefined}
    disabled=${disabled || busy} onClick=${press}>${children}</button>`;
}

/** @param {{label: string, hint?: string, children: any}} props */
export function Field({ label, hint, children }) {
  return html`<div class="field"><label><span class="field-label">${label}</span>${children}</label>
    ${hint && html`<span class="field-hint">${hint}</span>`}</div>`;
}

/** @typedef {{id?: number, text?: string, problem?: any, action?: {label: string, run: () => Promise<any> | void}}} Toast */

/** @type {(toast: Toast) => void} */
let show = () => undefined;

/** Shows a message for a moment, at the bottom. @param {Toast} it */
export function toast(it) {
  show(it);
}

/** How long it is shown. A message with an undo action stays longer. */
const SHORT = 5000;
const LONG = 12_000;

export function Toasts() {
  const [list, set] = useState(/** @type {Toast[]} */ ([]));
  const next = useRef(1);
  useEffect(() => {
    show = (it) => {
      const id = next.current++;
      set((all) => [...all.slice(-2), { ...it, id }]);
      setTimeout(() => set((all) => all.filter((one) => one.id !== id)), it.action || it.problem ? LONG : SHORT);
    };
    return () => {
      show = () => undefined;
    };
  }, []);
  const close = (/** @type {number | undefined} */ id) => set((all) => all.filter((one) => one.id !== id));
  return html`<div class="toasts" role="status" aria-live="polite">
    ${list.map(
      (it) => html`<div class=${`toast ${it.problem ? 'bad' : ''}`} key=${it.id}>
      <span>${it.problem ? [plain(it.problem.message ?? it.problem), ' ', it.problem.hint && html`<span class="dim">
        ${plain(it.problem.hint)}</span>`] : it.text}</span>
      ${
        it.action &&
        html`<button class="small" data-undo=${it.action.label === 'Undo' ? 'yes' : undefined} onClick=${async () => {
          close(it.id);
          try {
            await it.action?.run();
          } catch (problem) {
            toast({ problem });
          }
        }}>${it.action.label}</button>`
      }
      <button class="plain-button" aria-label="Dismiss" onClick=${() => close(it.id)}>✕</button>
    </div>`,
    )}
  </div>`;
}
