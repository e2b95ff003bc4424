// @ts-check
// The sidebar of a conversation: plan, flow, family, files, cost.
import { html } from '../html.js';
import { get, sessionPath } from '../api.js';
import { FlowGraph } from '../graph.js';
import { Budget } from '../plot.js';
import { Status } from '../parts.js';
import { toSession } from '../route.js';
import { useLoad } from '../state.js';
import { money, plain, spent } from '../text.js';

const MARKS = { done: '✓', running: '▸', failed: '✗', skipped: '–', unrecoverable: '✗', pending: '○' };

/** @param {{session: any, store: string, onLane: (lane: string) => void}} props */
export function Aside({ session, store, onLane }) {
  const id = session.id;
  // Requested again with every step, not with every event.
  const load = useLoad(
    async (signal) => {
      const [work, tree, cost, plan] = await Promise.all([
        get(sessionPath(id, '/state'), { store }, signal),
        get(sessionPath(id, '/tree'), { store }, signal),
        get(sessionPath(id, '/cost'), { store }, signal),
        session.flow ? get(sessionPath(id, '/flow'), { store }, signal).catch(() => null) : null,
      ]);
      return { work, tree: tree.items, cost, plan };
    },
    [id, store, session.steps, session.status, session.open_gates],
  );
  const { work, tree = [], cost, plan } = load.data ?? {};
  const sources = Object.entries(cost?.by_source ?? {});
  const lanes = (session.lanes ?? []).length > 1 ? session.lanes : [];
  return html`<aside class="beside" aria-label="About this session">
    ${session.flow && html`<section><h2>Flow ${plain(session.flow.name)}</h2>
      <${FlowGraph} flow=${session.flow} plan=${plan}
      onPick=${(/** @type {any} */ node) => onLane(laneOf(node, session.lanes ?? []))} /></section>`}
    ${
      work &&
      (work.tasks.length > 0 || work.phase) &&
      html`<section><h2>Plan ${work.progress.tasks > 0 && html`<span class="dim">
        ${work.progress.done} of ${work.progress.tasks} done</span>`}</h2>
      ${work.phase && html`<p>Phase <span class="tag">${work.phase}</span></p>`}
      <ul class="tasks">${work.tasks.map(
        (
          /** @type {any} */ task,
        ) => html`<li class=${task.status} key=${task.id}><span class="task-mark" aria-hidden="true">
          ${MARKS[/** @type {'done'} */ (task.status)] ?? '○'}</span>
        <span><span class="unseen">${task.status}: </span>
          ${plain(task.description || task.id)}${task.waits_for.length > 0 && html` <span
          class="dim">after ${task.waits_for.join(', ')}</span>`}</span></li>`,
      )}</ul></section>`
    }
    ${
      tree.length > 0 &&
      html`<section><h2>Family</h2><ul class="plain-list">${tree.map(
        (
          /** @type {any} */ child,
        ) => html`<li key=${child.id}><span class="tag">${child.kind}</span> <a href=${toSession(store, child.id)}>
          ${child.id}</a>
      ${child.at !== undefined && html`<span class="dim"> at ${child.at}</span>`} <${Status} session=${child} />
        </li>`,
      )}</ul></section>`
    }
    ${session.files?.length > 0 && html`<section><h2>Files <span class="dim">${session.files.length}</span></h2>
      <ul class="plain-list">${session.files.slice(0, 30).map((/** @type {string} */ path) => html`<li key=${path}>
      <a href=${toSession(store, id, 'time', { tab: 'files', path })}><code class="path">${plain(path)}</code></a>
      </li>`)}</ul></section>`}
    ${session.checkpoints?.length > 0 && html`<section><h2>Checkpoints</h2><ul class="plain-list">
      ${session.checkpoints.map((/** @type {any} */ point) => html`<li key=${point.seq}>
      <a href=${toSession(store, id, 'time', { at: point.seq })}>${plain(point.name)}</a> <span class="dim">${point.seq}
      </span></li>`)}</ul></section>`}
    <section><h2>Cost</h2>
      ${session.budget !== undefined && session.budget !== null && html`<${Budget} name="Budget"
        used=${(session.with_subagents ?? session).cost} most=${Number(session.budget)} />`}
      <ul class="plain-list numbers-list">
        ${(lanes.length ? lanes.map((/** @type {any} */ it) => [it.lane, it.cost]) : sources).map((/** @type {[string, any]} */ [name, dollars]) => html`<li
        key=${name}><span class="clip">${plain(name || 'main')}</span><span class="grow"></span>
        ${dollars === null ? 'unknown' : money(Number(dollars))}</li>`)}
        <li><strong>All</strong><span class="grow"></span><strong>${spent(session.with_subagents ?? session, session.estimated_cost_usd)}</strong>
          </li></ul></section>
  </aside>`;
}

/** The conversation that a node is part of: its agent's. @param {any} node @param {any[]} lanes */
function laneOf(node, lanes) {
  return lanes.find((it) => it.lane === node.agent || it.lane === node.key)?.lane ?? '';
}
