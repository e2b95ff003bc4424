// @ts-check
// The header of every screen of a session: name, status, actions.
import { html, useEffect, useRef, useState } from './html.js';
import { change, get, resumeSession, save, sessionPath } from './api.js';
import { useKeys } from './keys.js';
import { Act, Age, Dialog, Field, Loading, ProblemNote, Status, toast } from './parts.js';
import { go, toSession } from './route.js';
import { announceChange, isAsRecorded, storeName, useApp, useLoad } from './state.js';
import { EditDialog, editSession, trashSession } from './screens/sessions.js';
import { firstLine, modelName, plain, spent, tokens, words } from './text.js';

/** A session in detail. Its followers keep it up to date. @param {string} store @param {string} id */
export function useSession(store, id) {
  const load = useLoad((signal) => get(sessionPath(id), { store }, signal), [store, id], { live: true });
  const [newer, setNewer] = useState(/** @type {any} */ (null));
  useEffect(() => setNewer(null), [store, id]);
  return { ...load, data: newest(load.data, newer), merge: setNewer };
}

/** The details of a session that streams do not contain. */
const DETAILS = [
  'with_subagents',
  'lanes',
  'files',
  'checkpoints',
  'artifacts',
  'flow',
  'nodes',
  'project',
  'resumed_at',
];

/** The newer one of the requested and the streamed state. @param {any} asked @param {any} told */
function newest(asked, told) {
  if (!asked || !told || told.id !== asked.id || told.seq <= asked.seq) return asked;
  const kept = Object.fromEntries(DETAILS.filter((name) => name in asked).map((name) => [name, asked[name]]));
  return { ...told, ...kept };
}

/** Is it running? A run that has ended may keep its lease for a moment. @param {any} session */
export function isHeld(session) {
  return session.status === 'running' || (session.status === 'paused' && Boolean(session.held_by));
}

/** @param {any} session @param {string} store */
async function resume(session, store) {
  await resumeSession(store, session.id);
  announceChange();
  toast({ text: 'Resumed.' });
}

/** @param {any} session @param {string} store */
async function stop(session, store) {
  await change('POST', sessionPath(session.id, '/stop'), {}, { store });
  toast({ text: 'It was asked to stop.' });
}

/** @param {{info: any, route: import('./route.js').Route, gone?: boolean, children?: any}} props */
export function SessionFrame({ info, route, gone, children }) {
  const app = useApp();
  const { store = '', id = '' } = route;
  const session = info.data;
  const [dialog, open] = useState('');
  const header = useRef(/** @type {HTMLElement | null} */ (null));
  const [isAway, setAway] = useState(false);
  useEffect(() => {
    if (!header.current) return undefined;
    const watch = new IntersectionObserver(([entry]) => setAway(!entry.isIntersecting), {
      rootMargin: '-60px 0px 0px',
    });
    watch.observe(header.current);
    return () => watch.disconnect();
  }, [Boolean(session)]);
  const title = session ? firstLine(session.label || session.task || session.id, 140) : id;
  useEffect(() => {
    document.title = `${title} · Stepwell`;
  }, [title]);
  const isRunning = session && isHeld(session);
  const may = app.server?.may_change;
  const mayStart = app.server?.may_start && session && session.driver !== 'external';
  useKeys(
    {
      c: () => go(toSession(store, id)),
      t: () => go(toSession(store, id, 'time')),
      v: () => go(toSession(store, id, 'compare')),
    },
    [store, id],
  );
  if (!session)
    return html`<${ProblemNote} problem=${info.problem} retry=${info.reload} />
      ${!info.problem && html`<${Loading} />`}`;
  const cost = session.with_subagents ?? session;
  const tab = (/** @type {string} */ screen, /** @type {string} */ label) =>
    html`<a class="tab" href=${toSession(store, id, screen)}
      aria-current=${(route.name === 'session' ? '' : route.name) === screen ? 'page' : undefined}>${label}</a>`;
  return html`
    ${isAway && html`<div class="session-bar row"><button class="plain-button clip" title="To the top"
      onClick=${() => window.scrollTo({ top: 0 })}>${title}</button><${Status} session=${session} />
      <span class="cost">${spent(cost, session.estimated_cost_usd)}</span></div>`}
    <header class="session-head">
      <div class="row wrap" ref=${header}>
        <h1 class="clip-2" dir="auto">${session.pinned && html`<span class="pin" role="img"
          aria-label="Pinned">★ </span>`}${title}</h1>
        <span class="grow"></span>
        <div class="row head-actions">
          ${may && isRunning && html`<${Act} class="bad"
            onPress=${() => stop(session, store)}>Stop<//>`}
          ${mayStart && !isRunning && (session.status !== 'success' || session.unheard) && !session.trashed_at && html`<${Act} class="primary"
            onPress=${() => resume(session, store)}>Resume<//>`}
          ${may && html`<button onClick=${() => open('edit')} title="Rename and tag">Rename</button>`}
          <button onClick=${() => open('more')} aria-haspopup="dialog">More…</button>
        </div>
      </div>
      <div class="session-facts">
        <${Status} session=${session} />
        ${session.stop_reason && session.status !== 'success' && !session.stopped && html`<span class="dim">
          ${words(session.stop_reason)}</span>`}
        ${session.phase && html`<span class="tag">${session.phase}</span>`}
        <strong class="cost" title="What it cost, with its subagents" aria-label=${`Cost ${spent(cost, session.estimated_cost_usd)}`}>${spent(cost, session.estimated_cost_usd)}
          </strong>
        <span class="dim">${tokens(cost.tokens)} tokens · ${session.steps} steps</span>
        <span class="dim">${[session.agent, modelName(session.model)].filter(Boolean).join(' · ')}</span>
        <span class="dim">${storeName(store)} · <${Age} at=${session.updated_at} /></span>
        ${session.parent && html`<span class="dim">${session.forked_at ? 'fork of' : 'subagent of'} <a
          href=${toSession(store, session.parent)}>${session.parent}</a></span>`}
        ${[...session.tags].map((/** @type {string} */ tag) => html`<span class="tag user" key=${tag}>${tag}</span>`)}
        ${session.trashed_at && html`<span class="badge">in the trash</span>`}
        ${gone && html`<span class="badge ask">erased</span>`}
      </div>
      ${session.error && html`<p class="problem" role="alert">${plain(session.error)}</p>`}
      ${session.damage && html`<p class="problem"
        role="alert">Damaged at ${session.damage.seq}: ${plain(session.damage.what)}</p>`}
      <nav class="tabs" aria-label="Session">
        ${tab('', 'Conversation')}${tab('time', 'Time travel')}${tab('compare', 'Compare')}</nav>
    </header>
    ${children}
    ${
      dialog === 'edit' &&
      html`<${EditDialog} session=${{ ...session, store }} onClose=${() => {
        open('');
        info.reload();
      }} />`
    }
    ${dialog === 'more' && html`<${MoreDialog} session=${session} store=${store} info=${info}
      onClose=${() => open('')} />`}`;
}

/** The less common actions. @param {{session: any, store: string, info: any, onClose: () => void}} props */
function MoreDialog({ session, store, info, onClose }) {
  const app = useApp();
  const [name, setName] = useState('');
  const may = app.server?.may_change;
  const verified = useLoad((signal) => get(sessionPath(session.id, '/verify'), { store }, signal), [session.id]);
  const done = (/** @type {string} */ text) => {
    toast({ text });
    info.reload();
    announceChange();
    onClose();
  };
  const path = (/** @type {string} */ rest) => sessionPath(session.id, rest);
  return html`<${Dialog} title="Session" onClose=${onClose}>
    <dl class="facts-list">
      <div><dt>Id</dt><dd><code>${session.id}</code> <${Act} class="small" onPress=${async () => {
        await navigator.clipboard.writeText(session.id);
        toast({ text: 'Copied.' });
      }}>Copy<//></dd></div>
      <div><dt>Folder</dt><dd><code>${plain(session.workspace)}</code></dd></div>
      <div><dt>Log</dt><dd>${session.seq} events ${verified.data ? html`<span
        class=${`badge ${isAsRecorded(verified.data) ? 'good' : 'ask'}`}>
        ${isAsRecorded(verified.data) ? `verified: ${verified.data.intact} intact` : 'not as it was recorded'}
        </span>` : verified.problem ? html`<span class="badge ask">not verified: ${plain(verified.problem.message)}
        </span>` : html`<span class="dim">checking…</span>`}</dd></div>
      ${session.held_by && html`<div><dt>Runner</dt><dd>${plain(session.held_by)}</dd></div>`}
    </dl>
    ${
      may &&
      html`
      <form class="row" onSubmit=${async (/** @type {Event} */ event) => {
        event.preventDefault();
        try {
          await change('POST', path('/checkpoint'), { name: name.trim() }, { store });
          done('The checkpoint is made.');
        } catch (problem) {
          toast({ problem });
        }
      }}>
        <${Field} label="Checkpoint"><input value=${name} placeholder="A name for this point"
          onInput=${(/** @type {any} */ event) => setName(event.target.value)} /><//>
        <button type="submit" disabled=${!name.trim()}>Make</button></form>
      <div class="row wrap actions">
        <${Act} onPress=${async () => {
          await editSession({ ...session, store }, { pinned: !session.pinned });
          done(session.pinned ? 'No longer pinned.' : 'Pinned.');
        }}>${session.pinned ? 'Unpin' : 'Pin'}<//>
        <${Act} onPress=${async () => {
          const it = await change('POST', path('/fork'), {}, { store });
          done('Forked.');
          go(toSession(store, it.id));
        }}>Fork at its end<//>
        <${Act} onPress=${async () => {
          const made = await change('POST', path('/compact'), {}, { store });
          done(made.compacted || made.truncated ? 'Compacted.' : 'It is short enough: nothing was compacted.');
        }}>Compact<//>
        <${Act} onPress=${async () => {
          await change('POST', path('/compact/undo'), {}, { store });
          done('The compaction is taken back.');
        }}>Undo compaction<//>
        <${Act} class="quiet-bad" onPress=${async () => {
          await trashSession({ ...session, store });
          onClose();
          go('#/sessions');
        }}>Move to the trash<//>
      </div>`
    }
    <p class="row wrap">Save as ${['markdown', 'html', 'json', 'jsonl'].map((format) => html`<${Act} key=${format}
      class="small" onPress=${() => save(path('/export'), { store, format })}>${format}<//>`)}</p>
  <//>`;
}
