// @ts-check
// Inbox: open questions, and sessions that run, were stopped, or were interrupted.
import { html, useEffect, useState } from '../html.js';
import { get } from '../api.js';
import { GateCard } from '../gate.js';
import { focused, moveFocus, useKeys } from '../keys.js';
import { canNotify, isNotifying, setNotifying } from '../notify.js';
import { Empty, Loading, ProblemNote, SilentStores, toast } from '../parts.js';
import { go } from '../route.js';
import { askStores, gateName, useApp, useLoad } from '../state.js';
import { SessionRow } from './sessions.js';

/** How many sessions of a kind are requested from each store. */
const MOST = 100;

/**
 * Sessions of all stores with one of these statuses.
 * @param {string} status @param {AbortSignal} signal @param {any[]} stores
 */
async function withStatus(status, signal, stores) {
  let isMore = false;
  const { answers } = await askStores(stores, async (store) => {
    const family = status === 'paused,running' ? 'any' : 'roots';
    const list = await get('/sessions', { store: store.key, status, limit: MOST, family }, signal);
    isMore ||= Boolean(list.next);
    return list.items.map((/** @type {any} */ item) => ({ ...item, store: store.key }));
  });
  return { items: answers.flat(), isMore };
}

/** A number of sessions, of which there may be more. @param {{n: number, isMore: boolean}} props */
function Count({ n, isMore }) {
  return n > 0 ? html`<span class="count">${n}${isMore ? '+' : ''}</span>` : null;
}

export function Inbox() {
  const app = useApp();
  const names = app.stores.map((store) => store.key).join();
  const load = useLoad(
    async (signal) => {
      const [live, cut] = await Promise.all([
        withStatus('paused,running', signal, app.stores),
        withStatus('interrupted,partial', signal, app.stores),
      ]);
      return { live, cut };
    },
    [names],
    { live: true },
  );
  const [notifying, setNotify] = useState(isNotifying());
  useKeys(
    {
      j: () => moveFocus('.gate-card, .session-row', 1),
      k: () => moveFocus('.gate-card, .session-row', -1),
      Enter: () => {
        const open = focused('.gate-card')?.dataset.session ?? focused('.session-row')?.dataset.session;
        if (open && document.activeElement?.matches('.gate-card, .session-row')) go(open);
        else /** @type {HTMLElement | null} */ (document.activeElement)?.click?.();
      },
    },
    [],
  );
  useEffect(() => {
    document.title = app.gates.length ? `(${app.gates.length}) Inbox · Stepwell` : 'Inbox · Stepwell';
  }, [app.gates.length]);
  const live = load.data?.live.items ?? [];
  const byId = new Map(
    [...live, ...(load.data?.cut.items ?? [])].map((/** @type {any} */ it) => [`${it.store} ${it.id}`, it]),
  );
  const running = live.filter(
    (/** @type {any} */ it) => (it.status === 'running' && !it.parent) || (it.status === 'running' && it.forked_at),
  );
  // A fork that never ran was not interrupted.
  const ended = (load.data?.cut.items ?? []).filter(
    (/** @type {any} */ it) => !(it.forked_at && it.status === 'interrupted' && !it.stop_reason && !it.resumes),
  );
  const stopped = ended.filter((/** @type {any} */ it) => it.stopped);
  const cut = ended.filter((/** @type {any} */ it) => !it.stopped);
  return html`
    <header class="page-head"><h1>Inbox</h1><span class="grow"></span>
      ${
        canNotify() &&
        html`<label class="switch"><input type="checkbox" checked=${notifying} onChange=${async (
          /** @type {any} */ event,
        ) => {
          const on = await setNotifying(event.target.checked);
          setNotify(on);
          if (event.target.checked && !on) toast({ text: 'Your browser does not allow notifications from this page.' });
        }} /> Notify me</label>`
      }</header>
    <${ProblemNote} problem=${load.problem} retry=${load.reload} />
    <${SilentStores} failed=${app.silent} />
    <section aria-labelledby="waits"><h2 id="waits">Waits for you ${app.gates.length > 0 && html`<span class="count">
      ${app.gates.length}</span>`}</h2>
      ${app.gates.length === 0 && html`<${Empty} title="Nothing waits for you.">
        <p class="dim">When an agent asks before it changes something, the question is here.</p><//>`}
      ${app.gates.map((gate) => {
        const session = byId.get(`${gate.store} ${gate.session_id}`);
        return html`<${GateCard} key=${gateName(gate)} gate=${gate} task=${session?.label || session?.task}
          stopped=${session?.stopped} />`;
      })}</section>
    <section aria-labelledby="runs"><h2 id="runs">Runs <${Count} n=${running.length} isMore=${load.data?.live.isMore} /></h2>
      ${load.loading && !load.data ? html`<${Loading} />` : running.length === 0 ? html`<p class="dim">Nothing runs. <a
        href="#/start">Start something</a></p>` : running.map((/** @type {any} */ it) => html`<${SessionRow}
        key=${it.id} session=${it} />`)}</section>
    ${
      stopped.length > 0 &&
      html`<section aria-labelledby="stopped"><h2 id="stopped">Stopped by a person <${Count} n=${stopped.length}
        isMore=${load.data?.cut.isMore} /></h2>
      ${stopped.map((/** @type {any} */ it) => html`<${SessionRow} key=${it.id} session=${it} resume=${true} />`)}</section>`
    }
    <section aria-labelledby="cut"><h2 id="cut">Was cut off <${Count} n=${cut.length} isMore=${load.data?.cut.isMore} />
      </h2>
      ${cut.length === 0 && load.data && html`<p class="dim">Nothing was cut off.</p>`}
      ${cut.map((/** @type {any} */ it) => html`<${SessionRow} key=${it.id} session=${it} resume=${true} />`)}
        </section>`;
}
