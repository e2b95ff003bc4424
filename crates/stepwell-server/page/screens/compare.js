// @ts-check
// Compare: two sessions side by side.
import { html } from '../html.js';
import { get, sessionPath } from '../api.js';
import { Conversation } from '../conversation.js';
import { FileDiffs } from '../diff.js';
import { SessionFrame, useSession } from '../frame.js';
import { Empty, Loading, ProblemNote, Status } from '../parts.js';
import { go, toSession } from '../route.js';
import { useLoad } from '../state.js';
import { ItemView } from '../talk.js';
import { duration, firstLine, modelName, money, spent, tokens } from '../text.js';

/** Sessions to compare with: forks and ancestors, then others. @param {string} store @param {any} session @param {AbortSignal} signal */
async function candidates(store, session, signal) {
  const [own, above, list] = await Promise.all([
    get(sessionPath(session.id, '/tree'), { store }, signal),
    session.parent && session.forked_at
      ? get(sessionPath(session.parent, '/tree'), { store }, signal).catch(() => ({ items: [] }))
      : { items: [] },
    get('/sessions', { store, limit: 50 }, signal),
  ]);
  const forks = [...own.items, ...above.items].filter((it) => it.kind === 'fork').map((it) => it.id);
  const kin = new Set([...(session.forked_at ? [session.parent] : []), ...forks].filter((id) => id !== session.id));
  const names = new Map(
    list.items.map((/** @type {any} */ it) => [it.id, firstLine(it.label || it.task || it.id, 60)]),
  );
  const others = list.items
    .map((/** @type {any} */ it) => it.id)
    .filter((/** @type {string} */ id) => id !== session.id && !kin.has(id));
  return { kin: [...kin], others, names };
}

/** @param {{route: import('../route.js').Route}} props */
export function Compare({ route }) {
  const { store = '', id = '' } = route;
  const info = useSession(store, id);
  const session = info.data;
  const choice = useLoad(
    (signal) => (session ? candidates(store, session, signal) : Promise.resolve(null)),
    [store, session?.id],
  );
  const other = route.query.with || choice.data?.kin[0] || '';
  const load = useLoad(
    (signal) => (other ? get(sessionPath(id, '/compare'), { store, with: other }, signal) : Promise.resolve(null)),
    [store, id, other],
    { live: true },
  );
  const option = (/** @type {string} */ it) =>
    html`<option value=${it}>${choice.data?.names.get(it) ?? ''} ${it}</option>`;
  const found = load.data;
  return html`<${SessionFrame} info=${info} route=${route}>
    <label class="row wrap compare-with">Compare with
      <select value=${other} onChange=${(/** @type {any} */ event) => go(toSession(store, id, 'compare', { with: event.target.value }))}>
        ${!other && html`<option value="">Choose a session</option>`}
        ${choice.data?.kin.length > 0 && html`<optgroup label="Forks">${choice.data.kin.map(option)}</optgroup>`}
        ${choice.data?.others.length > 0 && html`<optgroup label="Others">${choice.data.others.map(option)}</optgroup>`}
      </select></label>
    <${ProblemNote} problem=${load.problem} />
    ${!other && choice.data && html`<${Empty} title="Choose a session to compare with.">
      <p class="dim">Forks of a session share its beginning: <a
      href=${toSession(store, id, 'time')}>make one</a> at any point.</p><//>`}
    ${other && !found && load.loading && html`<${Loading} />`}
    ${
      found &&
      html`
      <p class="parted">${found.parted_at > 0 ? html`They part behind event <a
        href=${toSession(store, id, 'time', { at: found.parted_at })}>${found.parted_at}
        </a>.` : 'They share no beginning.'}</p>
      <div class="split">${side('A', found.left, store)}${side('B', found.right, store)}</div>
      <section><h2>Files, A against B</h2><${FileDiffs} files=${found.files} none="Both left the same files." />
        </section>
      <div class="split">
        <section>
          <h2>What A did since</h2>
          <${FileDiffs} files=${found.left.files} open=${false} none="It changed no file." />
          <${Since} store=${store} session=${found.left.session} after=${found.parted_at} />
        </section>
        <section>
          <h2>What B did since</h2>
          <${FileDiffs} files=${found.right.files} open=${false} none="It changed no file." />
          <${Since} store=${store} session=${found.right.session} after=${found.parted_at} />
        </section>
      </div>`
    }
  <//>`;
}

/** How many events of each are shown. */
const MOST = 200;

/** A session's work after an event. @param {{store: string, session: any, after: number}} props */
function Since({ store, session, after }) {
  const load = useLoad(
    (signal) => get(sessionPath(session.id, '/events'), { store, from: after + 1, limit: MOST }, signal),
    [store, session.id, after, session.seq],
  );
  if (!load.data) return load.problem ? html`<${ProblemNote} problem=${load.problem} />` : html`<${Loading} />`;
  const { items } = new Conversation().add(load.data.items);
  const place = { store, id: session.id, unfold: false, lanes: false, flow: Boolean(session.flow) };
  const shown = items.filter((item) => item.role !== 'system' && item.role !== 'context');
  return html`
    <ol class="items since" aria-label="What it did">
      ${shown.map((item) => html`<${ItemView} key=${item.seq} item=${item} version=${item.version} place=${place} />`)}
    </ol>
    ${load.data.next && html`<p class="dim"><a href=${toSession(store, session.id)}>The rest is in its conversation.</a>
      </p>`}`;
}

/** @param {string} name @param {any} it @param {string} store */
function side(name, it, store) {
  const session = it.session;
  const took = (Date.parse(session.updated_at) - Date.parse(session.created_at)) / 1000;
  return html`<section class="card" aria-label=${`Session ${name}`}>
    <header class="row wrap"><span class="badge">${name}</span> <a href=${toSession(store, session.id)}>
      ${firstLine(session.label || session.task || session.id, 90)}</a><span class="grow"></span>
      <${Status} session=${session} /></header>
    <dl class="facts-list">
      <div><dt>Since they parted</dt><dd>${it.steps} steps, ${spent(it.since)}, ${tokens(it.since.tokens)} tokens</dd>
        </div>
      <div><dt>In all</dt><dd>${session.steps} steps, ${money(session.cost)}</dd></div>
      <div><dt>Time</dt><dd>${duration(took)}</dd></div>
      <div><dt>Model</dt><dd>${session.agent} · ${modelName(session.model)}</dd></div>
      <div><dt>Files</dt><dd>${it.files.length} changed</dd></div>
    </dl></section>`;
}
