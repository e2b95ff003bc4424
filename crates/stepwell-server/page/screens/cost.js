// @ts-check
// Cost: by day, model, agent and project.
import { html, useEffect, useState } from '../html.js';
import { get } from '../api.js';
import { Loading, ProblemNote, SilentStores } from '../parts.js';
import { Budget, Columns, Rows } from '../plot.js';
import { toSession } from '../route.js';
import { askStores, useApp, useLoad } from '../state.js';
import { count, firstLine, modelName, money, short } from '../text.js';

const DAY = 86_400_000;

/** Adds groups of the same name. @param {any[]} groups @param {(name: string) => string} [rename] */
function together(groups, rename = (name) => name) {
  /** @type {Map<string, any>} */ const found = new Map();
  for (const group of groups) {
    const name = rename(group.name);
    const had = found.get(name) ?? { name, value: 0, sessions: 0, tokens: 0 };
    had.value += group.cost;
    had.sessions += group.sessions;
    had.tokens += (group.tokens.input ?? 0) + (group.tokens.output ?? 0);
    found.set(name, had);
  }
  return [...found.values()].map((it) => ({
    ...it,
    detail: `${it.sessions} session${it.sessions === 1 ? '' : 's'}, ${short(it.tokens)} tokens`,
  }));
}

/** Every day from the first to today, including days without a session. @param {any[]} days @param {number} span */
function filled(days, span) {
  const known = new Map(days.map((day) => [day.name, day]));
  const today = Date.now();
  const names = days.map((day) => day.name).sort();
  const first = span
    ? today - (span - 1) * DAY
    : Math.max(Date.parse(names[0] ?? new Date(today).toISOString().slice(0, 10)), today - 89 * DAY);
  const found = [];
  for (let at = first; at <= today + DAY / 2; at += DAY) {
    const name = new Date(at).toISOString().slice(0, 10);
    if (name > new Date(today).toISOString().slice(0, 10)) break;
    found.push({ ...(known.get(name) ?? { name, value: 0 }), label: name.slice(5) });
  }
  return found;
}

export function Cost() {
  const app = useApp();
  const [span, setSpan] = useState(30);
  const names = app.stores.map((store) => store.key).join();
  useEffect(() => {
    document.title = 'Cost · Stepwell';
  }, []);
  const load = useLoad(
    async (signal) => {
      const since = span ? new Date(Date.now() - span * DAY).toISOString() : undefined;
      return askStores(app.stores, async (store) => {
        const [stats, top] = await Promise.all([
          get('/stats', { store: store.key, since }, signal),
          get('/sessions', { store: store.key, sort: 'cost', limit: 100, since }, signal),
        ]);
        return {
          store: store.key,
          stats,
          top: top.items.map((/** @type {any} */ it) => ({ ...it, store: store.key })),
        };
      });
    },
    [names, span],
    { live: true },
  );
  const all = load.data?.answers ?? [];
  const sum = (/** @type {(stats: any) => number} */ of) =>
    all.reduce((/** @type {number} */ n, /** @type {any} */ it) => n + of(it.stats), 0);
  const groups = (/** @type {string} */ name) => all.flatMap((/** @type {any} */ it) => it.stats[name]);
  const top = all
    .flatMap((/** @type {any} */ it) => it.top)
    .filter((/** @type {any} */ it) => it.cost > 0)
    .sort((/** @type {any} */ one, /** @type {any} */ other) => whole(other) - whole(one));
  // The sessions that are closest to their budget.
  const budgets = top
    .filter((/** @type {any} */ it) => it.budget)
    .sort((/** @type {any} */ one, /** @type {any} */ other) => used(other) - used(one))
    .slice(0, 8);
  const unpriced = sum((stats) => stats.unpriced_calls);
  return html`
    <header class="page-head"><h1>Cost</h1><span class="grow"></span>
      <div class="segments" role="group" aria-label="Span">${[
        [7, '7 days'],
        [30, '30 days'],
        [90, '90 days'],
        [0, 'All'],
      ].map(
        ([days, label]) =>
          html`<button key=${days} aria-pressed=${span === days} onClick=${() => setSpan(Number(days))}>${label}
            </button>`,
      )}</div></header>
    <${ProblemNote} problem=${load.problem} retry=${load.reload} />
    <${SilentStores} failed=${load.data?.failed} />
    ${!load.data && load.loading && html`<${Loading} />`}
    ${
      load.data &&
      html`
      <div class="tiles">
        ${tile(
          'Spent',
          money(
            sum((stats) => stats.cost),
            unpriced > 0,
          ),
          unpriced > 0 ? `${count(unpriced)} calls have no known price` : 'subagents included',
        )}
        ${tile('Sessions', count(sum((stats) => stats.sessions)), `${count(sum((stats) => stats.resumed))} resumed`)}
        ${tile('Tokens', short(sum((stats) => (stats.tokens.input ?? 0) + (stats.tokens.output ?? 0))), `${count(sum((stats) => stats.calls))} calls`)}
        ${tile('Succeeded', success(all), 'of those that ended')}
      </div>
      <section class="card"><${Columns} title="By day" bars=${filled(together(groups('by_day')), span)} /></section>
      <div class="split">
        <section class="card"><${Rows} title="By model" bars=${together(groups('by_model'), modelName)} /></section>
        <section class="card"><${Rows} title="By agent" bars=${together(groups('by_agent'))} /></section>
        <section class="card"><${Rows} title="By project"
          bars=${together(groups('by_workspace'), folderName)} />
          </section>
        <section class="card"><figure class="plot"><figcaption>Sessions that cost most</figcaption>
          <ul class="plain-list numbers-list">${top.slice(0, 8).map((/** @type {any} */ it) => html`<li key=${it.id}>
          <a class="clip" href=${toSession(it.store, it.id)}>${firstLine(it.label || it.task || it.id, 70)}</a>
          <span class="grow"></span>${money(whole(it))}</li>`)}</ul></figure></section>
      </div>
      ${budgets.length > 0 && html`<section class="card"><figure class="plot"><figcaption>Budgets</figcaption>
        <div class="rows">${budgets.map((/** @type {any} */ it) => html`<${Budget} key=${it.id} name=${html`<a
        href=${toSession(it.store, it.id)}>${firstLine(it.label || it.task, 40)}
        </a>`} used=${whole(it)} most=${Number(it.budget)} />`)}</div></figure></section>`}`
    }`;
}

/** What a session cost with its subagents. @param {any} it */
function whole(it) {
  return (it.with_subagents ?? it).cost;
}

/** A folder's short name: its last two parts tell one project from another. @param {string} path */
function folderName(path) {
  return path.split('/').filter(Boolean).slice(-2).join('/') || path;
}

/** How much of its budget a session spent. @param {any} it */
function used(it) {
  return whole(it) / Math.max(Number(it.budget), 1e-9);
}

/** @param {string} name @param {string} value @param {string} detail */
function tile(name, value, detail) {
  return html`<div class="tile"><div class="dim">${name}</div><div class="tile-value">${value}</div><div class="dim">
    ${detail}</div></div>`;
}

/** @param {any[]} all */
function success(all) {
  const of = (/** @type {string} */ status) => all.reduce((n, it) => n + (it.stats.by_status[status] ?? 0), 0);
  const ended = of('success') + of('failed') + of('abandoned');
  return ended ? `${Math.round((of('success') / ended) * 100)} %` : '–';
}
