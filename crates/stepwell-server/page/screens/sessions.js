// @ts-check
// Sessions: a list with filters; rename, tag, pin, trash with undo. The trash is the same list.
import { html, useEffect, useState } from '../html.js';
import { change, get, resumeSession, sessionPath } from '../api.js';
import { Icon } from '../icons.js';
import { focused, moveFocus, useKeys } from '../keys.js';
import { Act, Age, Dialog, Empty, Field, Loading, ProblemNote, SilentStores, Status, statusWord, toast } from '../parts.js';
import { go, replace, toSession, withQuery } from '../route.js';
import { announceChange, askStores, homeStore, state, storeName, useApp, useLoad } from '../state.js';
import { ImportDialog } from './import.js';
import { firstLine, modelName, plural, short, spent, tokens } from '../text.js';

const STATUSES = ['running', 'paused', 'interrupted', 'partial', 'success', 'failed', 'abandoned', 'idle'];

/** @param {any} session @param {object} patch */
export async function editSession(session, patch) {
  await change('PATCH', sessionPath(session.id), patch, { store: session.store });
  announceChange();
}

/** Deletes a session, and offers to restore it. @param {any} session */
export async function trashSession(session) {
  await change('DELETE', sessionPath(session.id), {}, { store: session.store });
  announceChange();
  toast({
    text: `“${firstLine(session.label || session.task || session.id, 40)}” is in the trash.`,
    action: { label: 'Undo', run: () => restoreSession(session) },
  });
}

/** @param {any} session */
export async function restoreSession(session) {
  await change('POST', sessionPath(session.id, '/restore'), {}, { store: session.store });
  announceChange();
  toast({ text: 'It is back.' });
}

/** @param {{session: any, onClose: () => void}} props */
export function EditDialog({ session, onClose }) {
  const [label, setLabel] = useState(session.label ?? '');
  const [tags, setTags] = useState([...(session.tags ?? [])].join(', '));
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const save = async (/** @type {Event} */ event) => {
    event.preventDefault();
    try {
      const list = tags
        .split(',')
        .map((/** @type {string} */ tag) => tag.trim())
        .filter(Boolean);
      await editSession(session, { label: label.trim() || null, tags: list });
      onClose();
    } catch (refused) {
      setProblem(refused);
    }
  };
  return html`<${Dialog} title="Rename and tag" onClose=${onClose}>
    <form onSubmit=${save}>
      <${Field} label="Name" hint="Short, for people. Empty takes it away.">
        <input value=${label} maxlength="100" onInput=${(/** @type {any} */ event) => setLabel(event.target.value)} />
        <//>
      <${Field} label="Tags" hint="Separated by commas."><input value=${tags}
        onInput=${(/** @type {any} */ event) => setTags(event.target.value)} /><//>
      <${ProblemNote} problem=${problem} />
      <div class="row actions"><span class="grow"></span><button type="button" onClick=${onClose}>Cancel</button>
        <button class="primary" type="submit">Save</button></div>
    </form><//>`;
}

/** One session in a list. @param {{session: any, resume?: boolean, trashed?: boolean, onEdit?: (session: any) => void}} props */
export function SessionRow({ session, resume, trashed, onEdit }) {
  const may = state.server?.may_change;
  const cost = session.with_subagents ?? session;
  const where = toSession(session.store, session.id);
  return html`<div class="session-row" tabindex="0" data-session=${where} data-id=${session.id}
    data-store=${session.store}
      role="group" aria-label=${`${firstLine(session.label || session.task || session.id, 80)}, ${statusWord(session)}`}>
    <div class="session-main">
      <a class="session-title" href=${where} tabindex="-1">${session.pinned && html`<span class="pin" role="img"
        aria-label="Pinned">★ </span>`}${firstLine(session.label || session.task || session.id)}</a>
      <div class="session-facts">
        <${Status} session=${session} />
        ${session.open_gates > 0 && html`<span class="badge ask">${plural(session.open_gates, 'question')}</span>`}
        ${session.label && session.task && html`<span class="dim clip">${firstLine(session.task, 80)}</span>`}
        ${session.flow && html`<span class="tag">flow ${session.flow.name}</span>`}
        ${session.forked_at && html`<span class="tag">fork</span>`}
        ${[...(session.tags ?? [])].map((tag) => html`<span class="tag user" key=${tag}>${tag}</span>`)}
        <span class="dim">${[session.agent, modelName(session.model)].filter(Boolean).join(' · ')}</span>
        ${state.stores.length > 1 && html`<span class="dim">${storeName(session.store)}</span>`}
      </div>
    </div>
    <div class="session-numbers"><span class="cost">${spent(cost, session.estimated_cost_usd)}</span><span class="dim">
      ${plural(short(session.steps), 'step')} · ${tokens(cost.tokens)} tokens</span><span class="dim">
      <${Age} at=${session.updated_at} /></span></div>
    <div class="session-actions">
      ${may && trashed && html`<${Act} class="small" onPress=${() => restoreSession(session)}>Restore<//>`}
      ${
        may &&
        resume &&
        state.server?.may_start &&
        html`<${Act} class="small" onPress=${async () => {
          await resumeSession(session.store, session.id);
          announceChange();
          toast({ text: 'Resumed.' });
        }}>Resume<//>`
      }
      ${
        may &&
        onEdit &&
        html`
        <${Act} class="icon" label=${session.pinned ? 'Unpin' : 'Pin'}
          title=${session.pinned ? 'Unpin' : 'Pin: keep it from cleanup'}
          onPress=${() => editSession(session, { pinned: !session.pinned })}>
          <${Icon} name="star" filled=${session.pinned} /><//>
        <${Act} class="icon" label="Rename and tag" title="Rename and tag" onPress=${() => onEdit(session)}>
          <${Icon} name="pencil" /><//>
        <${Act} class="icon" label="Move to the trash" title="Move to the trash"
          onPress=${() => trashSession(session)}><${Icon} name="trash" /><//>`
      }
    </div>
  </div>`;
}

/** @param {{route: import('../route.js').Route}} props */
export function Sessions({ route }) {
  const app = useApp();
  const trashed = route.name === 'trash';
  const query = route.query;
  const [editing, edit] = useState(/** @type {any} */ (null));
  const [importing, setImporting] = useState(false);
  const home = homeStore();
  // How many pages of each store are shown: those stay, whatever changes.
  const [pages, setPages] = useState(1);
  const stores = query.store ? app.stores.filter((store) => store.key === query.store) : app.stores;
  const filter = {
    status: query.status,
    agent: query.agent,
    model: query.model,
    tag: query.tag,
    task: query.task,
    sort: query.sort,
    trash: trashed || undefined,
    limit: 50,
  };
  const key = JSON.stringify([filter, stores.map((store) => store.key)]);
  const load = useLoad(
    async (signal) => {
      const { answers, failed } = await askStores(stores, (store) => pagesOf(store.key, filter, pages, signal));
      const items = answers.flatMap((list) => list.items);
      return { items: sorted(items, query.sort), isMore: answers.some((list) => list.isMore), failed };
    },
    [key, pages],
    { live: true },
  );
  useEffect(() => setPages(1), [key]);
  useEffect(() => {
    document.title = `${trashed ? 'Trash' : 'Sessions'} · Stepwell`;
  }, [trashed]);
  const all = /** @type {any[]} */ (load.data?.items ?? []);
  const set = (/** @type {string} */ name, /** @type {string} */ value) =>
    replace(withQuery(`#/${route.name}`, { ...query, [name]: value }));
  useKeys(
    {
      j: () => moveFocus('.session-row', 1),
      k: () => moveFocus('.session-row', -1),
      Enter: () => {
        const open = focused('.session-row')?.dataset.session;
        if (open && document.activeElement?.matches('.session-row')) go(open);
        else /** @type {any} */ (document.activeElement)?.click?.();
      },
    },
    [],
  );
  return html`
    <header class="page-head"><h1>${trashed ? 'Trash' : 'Sessions'}</h1><span class="grow"></span>
      ${
        !trashed &&
        app.server?.may_import &&
        home &&
        html`<button class="small" aria-haspopup="dialog" onClick=${() => setImporting(true)}>Import…</button>`
      }
      ${trashed ? html`<a href="#/sessions">Back to sessions</a>` : html`<a href="#/trash">Trash</a>`}</header>
    <div class="filters" role="group" aria-label="Filters">
      <select aria-label="Status" value=${query.status ?? ''}
        onChange=${(/** @type {any} */ event) => set('status', event.target.value)}>
        <option value="">Any status</option>${STATUSES.map((it) => html`<option value=${it}>${it}</option>`)}</select>
      ${
        app.stores.length > 1 &&
        html`<select aria-label="Project" value=${query.store ?? ''}
          onChange=${(/** @type {any} */ event) => set('store', event.target.value)}>
        <option value="">All projects</option>${app.stores.map((store) => html`<option value=${store.key}>
          ${storeName(store.key)}</option>`)}</select>`
      }
      <input aria-label="Text in the task" placeholder="Text in the task" value=${query.task ?? ''}
        onInput=${(/** @type {any} */ event) => set('task', event.target.value)} />
      <input aria-label="Tag" placeholder="Tag" class="narrow" value=${query.tag ?? ''}
        onInput=${(/** @type {any} */ event) => set('tag', event.target.value)} />
      <input aria-label="Agent" placeholder="Agent" class="narrow" value=${query.agent ?? ''}
        onInput=${(/** @type {any} */ event) => set('agent', event.target.value)} />
      <select aria-label="Sort by" value=${query.sort ?? ''}
        onChange=${(/** @type {any} */ event) => set('sort', event.target.value)}>
        <option value="">Newest change</option><option value="created">Newest</option><option value="cost">Cost</option>
          <option value="steps">Steps</option></select>
    </div>
    <${ProblemNote} problem=${load.problem} retry=${load.reload} />
    <${SilentStores} failed=${load.data?.failed} />
    ${!load.data && load.loading && html`<${Loading} />`}
    ${
      load.data &&
      all.length === 0 &&
      html`<${Empty} title=${trashed ? 'The trash is empty.' : 'No session is like this.'}>
      ${!trashed && homeStore() && html`<p class="dim"><a
        href="#/start">Start a run</a>, or run one with <code>stepwell run</code>.</p>`}<//>`
    }
    <div class="session-list">${all.map((session) => html`<${SessionRow} key=${`${session.store} ${session.id}`}
      session=${session} trashed=${trashed} onEdit=${trashed ? undefined : edit} />`)}</div>
    ${load.data?.isMore && html`<${Act} class="more" onPress=${() => setPages(pages + 1)}>Show more<//>`}
    ${editing && html`<${EditDialog} session=${editing} onClose=${() => edit(null)} />`}
    ${importing && home && html`<${ImportDialog} store=${home.key} onClose=${() => setImporting(false)} />`}`;
}

/**
 * The first pages of a store's list.
 * @param {string} store @param {object} filter @param {number} pages @param {AbortSignal} signal
 */
async function pagesOf(store, filter, pages, signal) {
  /** @type {any[]} */ const items = [];
  let cursor;
  for (let page = 0; page < pages; page += 1) {
    const list = /** @type {any} */ (await get('/sessions', { ...filter, store, cursor }, signal));
    items.push(...list.items.map((/** @type {any} */ item) => ({ ...item, store })));
    cursor = list.next;
    if (!cursor) break;
  }
  return { items, isMore: Boolean(cursor) };
}

/** Several stores' lists as one. @param {any[]} items @param {string | undefined} sort */
function sorted(items, sort) {
  const by = (/** @type {any} */ it) =>
    sort === 'cost'
      ? it.cost
      : sort === 'steps'
        ? it.steps
        : Date.parse(sort === 'created' ? it.created_at : it.updated_at);
  return items.sort((one, other) => by(other) - by(one));
}
