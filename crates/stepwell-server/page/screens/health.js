// @ts-check
// Health: the doctor's findings, the verification of every log, and the disk.
import { html, useEffect, useRef, useState } from '../html.js';
import { get, sessionPath } from '../api.js';
import { Loading, ProblemNote } from '../parts.js';
import { toSession } from '../route.js';
import { isAsRecorded, useApp, useLoad } from '../state.js';
import { bytes, count, plain, plural } from '../text.js';

export function Health() {
  const app = useApp();
  useEffect(() => {
    document.title = 'Health · Stepwell';
  }, []);
  return html`<header class="page-head"><h1>Health</h1><span class="grow"></span>
    <span class="dim">Stepwell ${app.server?.version}, as ${app.server?.caller}${app.server?.may_change ? '' : ', who may look only'}
    </span></header>
    ${app.stores.map((store) => html`<${StoreHealth} key=${store.key} store=${store} />`)}`;
}

/** @param {{store: import('../state.js').Store}} props */
function StoreHealth({ store }) {
  const load = useLoad(
    async (signal) => {
      if (store.problem) throw new Error(store.problem);
      const [doctor, disk] = await Promise.all([
        get('/doctor', { store: store.key }, signal),
        get('/disk', { store: store.key }, signal).catch(() => null),
      ]);
      return { findings: doctor.items, disk };
    },
    [store.key],
  );
  const findings = load.data?.findings ?? [];
  const bad = findings.filter((/** @type {any} */ it) => it.problems.length > 0);
  const disk = load.data?.disk;
  return html`<section class="card" aria-label=${store.name}>
    <header class="row wrap"><h2 class="clip"><code>${plain(store.workspace || store.name)}</code></h2>
      ${store.home && html`<span class="tag">home</span>`}<span class="grow"></span>
      ${load.data && html`<span class=${`badge ${bad.length ? 'ask' : 'good'}`}>
        ${bad.length ? plural(String(bad.length), 'finding') : 'all is well'}</span>`}</header>
    <${ProblemNote} problem=${load.problem} retry=${load.reload} />
    ${!load.data && load.loading && html`<${Loading} what="The doctor looks" />`}
    <ul class="plain-list checks">${findings.map(
      (
        /** @type {any} */ it,
      ) => html`<li key=${it.check} class=${it.problems.length ? 'wrong' : 'right'}>
        <span class="task-mark" aria-hidden="true">${it.problems.length ? '✗' : '✓'}</span><span><span class="unseen">
        ${it.problems.length ? 'wrong: ' : 'fine: '}</span>${it.check}
      ${it.problems.map((/** @type {string} */ problem) => html`<div class="dim">${plain(problem)}
        </div>`)}${it.problems.length > 0 && it.repair && html`<div
        class="dim">stepwell doctor --repair: ${plain(it.repair)}</div>`}</span></li>`,
    )}</ul>
    ${disk && html`<p>Disk: <strong>${bytes(disk.total)}</strong> <span
      class="dim">events ${bytes(disk.events)}, file contents ${bytes(disk.blobs)}, ${count(disk.sessions)} sessions</span>
      </p>`}
    ${!store.problem && html`<${VerifyAll} store=${store.key} />`}
  </section>`;
}

/** Verifies every log of a store, one after another. @param {{store: string}} props */
function VerifyAll({ store }) {
  const [found, setFound] = useState(/** @type {any} */ (null));
  const stopped = useRef(false);
  useEffect(
    () => () => {
      stopped.current = true;
    },
    [],
  );
  const run = async () => {
    const now = { done: 0, events: 0, bad: /** @type {any[]} */ ([]), over: false, at: new Date() };
    stopped.current = false;
    setFound({ ...now });
    let cursor;
    try {
      do {
        const list = /** @type {any} */ (await get('/sessions', { store, family: 'any', limit: 100, cursor }));
        for (const session of list.items) {
          if (stopped.current) return;
          const verdict = await get(sessionPath(session.id, '/verify'), { store });
          now.done += 1;
          now.events += verdict.intact;
          if (!isAsRecorded(verdict)) now.bad.push(verdict);
          setFound({ ...now });
        }
        cursor = list.next;
      } while (cursor);
      setFound({ ...now, over: true, at: new Date() });
    } catch (problem) {
      setFound({ ...now, problem, over: true });
    }
  };
  return html`<div class="row wrap verify" role="status">
    <button onClick=${run} disabled=${found && !found.over}>Verify every log</button>
    ${found && !found.over && html`<span class="dim">
      ${count(found.done)} sessions, ${count(found.events)} events…</span>`}
    ${found?.over && html`<span class=${`badge ${found.bad.length || found.problem ? 'ask' : 'good'}`}>
      ${found.bad.length ? `${found.bad.length} not as recorded` : 'verified'}</span><span class="dim">
      ${count(found.events)} events of ${count(found.done)} sessions at ${found.at.toLocaleTimeString()}</span>`}
    <${ProblemNote} problem=${found?.problem} />
    ${found?.bad.map((/** @type {any} */ it) => html`<a key=${it.session} href=${toSession(store, it.session)}>
      ${it.session}</a>`)}
  </div>`;
}
