// @ts-check
// Time travel: a slider over the log. It shows the model's view and the files at each point;
// fork there, or rewind to it.
import { html, useEffect, useRef, useState } from '../html.js';
import { change, get, keyOf, sessionPath } from '../api.js';
import { speaker } from '../conversation.js';
import { FileDiffs } from '../diff.js';
import { SessionFrame, useSession } from '../frame.js';
import { useKeys } from '../keys.js';
import { LOOK, loadMarks } from '../marks.js';
import { Act, Dialog, Empty, Field, Loading, LongText, ProblemNote, toast } from '../parts.js';
import { go, parse, replace, toSession } from '../route.js';
import { announceChange, useApp, useLoad } from '../state.js';
import { PartView } from '../talk.js';
import { count, moment, plain, words } from '../text.js';

/** How long the slider rests before a request. */
const PAUSE = 120;

/** A value that follows another after a pause. @param {any} value */
function useSettled(value) {
  const [settled, set] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => set(value), PAUSE);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

/** @param {{route: import('../route.js').Route}} props */
export function TimeTravel({ route }) {
  const app = useApp();
  const { store = '', id = '' } = route;
  const info = useSession(store, id);
  const head = info.data?.seq ?? 0;
  const [at, setAt] = useState(Number(route.query.at) || 0);
  const [dialog, open] = useState('');
  const point = Math.min(at || head, head || at);
  const settled = useSettled(point);
  const marks = useLoad((signal) => loadMarks(store, id, signal), [store, id, head]);
  useEffect(() => {
    setAt(Number(route.query.at) || 0);
  }, [route.query.at]);
  useEffect(() => {
    const shown = parse(window.location.hash);
    // A change to another screen may have begun.
    if (shown.name !== 'time' || shown.id !== id) return;
    if (settled && head && settled !== Number(route.query.at))
      window.history.replaceState(
        null,
        '',
        toSession(store, id, 'time', { ...route.query, at: settled === head ? '' : settled }),
      );
  }, [settled]);
  const all = marks.data ?? [];
  const stops = all.filter((/** @type {any} */ mark) => mark.kind !== 'gate_answered');
  const previous = () => setAt(stops.filter((/** @type {any} */ mark) => mark.seq < point).pop()?.seq ?? 1);
  const next = () => setAt(stops.find((/** @type {any} */ mark) => mark.seq > point)?.seq ?? head);
  const may = app.server?.may_change;
  useKeys({ '[': previous, ']': next }, [marks.data, point, head]);
  const here = [...all].reverse().find((/** @type {any} */ mark) => mark.seq <= point);
  const tab = route.query.tab === 'files' ? 'files' : 'model';
  const wasMoved = all.some((/** @type {any} */ mark) => mark.kind === 'rewound');
  return html`<${SessionFrame} info=${info} route=${route}>
    ${
      head > 0 &&
      html`
      <section class="timeline card" aria-label="Point in time">
        <${Strip} marks=${all} head=${head} at=${point} onPick=${setAt} />
        <input class="slider" type="range" min="1" max=${head} value=${point} aria-label="Event"
          aria-valuetext=${`Event ${point} of ${head}${here ? `, ${LOOK[here.kind]?.word ?? here.kind}` : ''}`}
          onInput=${(/** @type {any} */ event) => setAt(Number(event.target.value))} />
        <div class="row wrap">
          <button class="small" onClick=${previous} title="Previous mark ([)">‹ Mark</button>
          <label class="row">Event <input class="number-field" type="number" min="1" max=${head}
            aria-label="Event number" value=${point}
            onChange=${(/** @type {any} */ event) => setAt(Math.min(Math.max(Number(event.target.value), 1), head))} /> of ${count(head)}
            </label>
          <button class="small" onClick=${next} title="Next mark (])">Mark ›</button>
          ${here && html`<span class="dim">
            ${LOOK[here.kind]?.word ?? words(here.kind)}${here.name ? ` ${plain(here.name)}` : ''} at ${here.seq}, ${moment(here.at)}
            </span>`}
          <span class="grow"></span>
          ${
            may &&
            html`
            <button onClick=${() => open('fork')}>Fork here</button>
            <button disabled=${point >= head}
              onClick=${() => open('rewind')}>Rewind to here</button>
            ${wasMoved && html`<${Act} onPress=${() => takeBack(store, id, 'undo', info)}>Undo rewind<//>
              <${Act} onPress=${() => takeBack(store, id, 'redo', info)}>Redo<//>`}`
          }
        </div>
      </section>
      <nav class="tabs" aria-label="At this point">
        <a class="tab" href=${toSession(store, id, 'time', { ...route.query, at: point, tab: '' })}
          aria-current=${tab === 'model' ? 'page' : undefined}>What the model was shown</a>
        <a class="tab" href=${toSession(store, id, 'time', { ...route.query, at: point, tab: 'files' })}
          aria-current=${tab === 'files' ? 'page' : undefined}>Files then</a>
      </nav>
      ${tab === 'model' ? html`<${Shown} store=${store} id=${id} at=${settled}
        lanes=${info.data?.lanes ?? []} />` : html`<${FilesThen} store=${store} id=${id} at=${settled} head=${head}
        route=${route} />`}`
    }
    ${dialog === 'fork' && html`<${ForkDialog} store=${store} id=${id} at=${point} onClose=${() => open('')} />`}
    ${dialog === 'rewind' && html`<${RewindDialog} store=${store} id=${id} at=${point} info=${info}
      onClose=${() => open('')} />`}
  <//>`;
}

/** The marks above the slider. @param {{marks: any[], head: number, at: number, onPick: (seq: number) => void}} props */
function Strip({ marks, head, at, onPick }) {
  const x = (/** @type {number} */ seq) => (head > 1 ? ((seq - 1) / (head - 1)) * 1000 : 500);
  // Of several steps at the same position one is enough.
  const seen = new Set();
  const shown = marks.filter((mark) => {
    const key = `${mark.kind} ${Math.round(x(mark.seq))}`;
    return !seen.has(key) && seen.add(key);
  });
  const named = marks.filter((mark) => ['checkpoint', 'rewound', 'compacted', 'gate'].includes(mark.kind)).slice(-40);
  return html`<div class="strip">
    <svg viewBox="0 0 1000 24" preserveAspectRatio="none" role="img" aria-label=${`${marks.length} marks`} onClick=${(
      /** @type {MouseEvent} */ event,
    ) => {
      const box = /** @type {SVGElement} */ (event.currentTarget).getBoundingClientRect();
      onPick(Math.round(((event.clientX - box.left) / box.width) * (head - 1)) + 1);
    }}>
      ${shown.map((mark) => html`<line key=${`${mark.seq} ${mark.kind}`} class=${`mark ${mark.kind}`} x1=${x(mark.seq)}
        x2=${x(mark.seq)} y1=${24 - (LOOK[mark.kind]?.tall ?? 8)} y2="24" />`)}
      <line class="mark now" x1=${x(at)} x2=${x(at)} y1="0" y2="24" />
    </svg>
    ${named.length > 0 && html`<div class="row wrap mark-list">${named.map((mark) => html`<button
      key=${`${mark.seq} ${mark.kind}`} class=${`small mark-button ${mark.kind} ${mark.seq === at ? 'chosen' : ''}`}
      onClick=${() => onPick(mark.seq)}>
      ${LOOK[mark.kind].word}${mark.name && mark.kind !== 'gate' ? ` ${plain(mark.name)}` : ''} <span class="dim">
      ${mark.seq}</span></button>`)}</div>`}
  </div>`;
}

/** The exact view of the model. @param {{store: string, id: string, at: number, lanes: any[]}} props */
function Shown({ store, id, at, lanes }) {
  const [lane, setLane] = useState('');
  const chosen = lane || lanes[0]?.lane || 'main';
  const load = useLoad(
    (signal) => get(sessionPath(id, '/view'), { store, at, lane: chosen === 'main' ? undefined : chosen }, signal),
    [store, id, at, chosen],
  );
  const view = load.data;
  return html`<section aria-label="What the model was shown">
    ${lanes.length > 1 && html`<select aria-label="Conversation" value=${chosen}
      onChange=${(/** @type {any} */ event) => setLane(event.target.value)}>
      ${lanes.map((it) => html`<option value=${it.lane}>${it.lane}</option>`)}</select>`}
    <${ProblemNote} problem=${load.problem} retry=${load.reload} />
    ${!view && load.loading && html`<${Loading} />`}
    ${
      view &&
      html`
      <p class="dim">About ${count(view.tokens)} tokens${view.context ? ` of ${count(view.context)}` : ''}: instructions ${count(view.instructions.tokens)}, ${view.tools.names.length} tools ${count(view.tools.tokens)}, ${view.messages.length} messages.</p>
      <details class="fold"><summary>Instructions and tools</summary><${LongText} text=${view.instructions.text} />
        <p class="dim">${view.tools.names.join(', ')}</p></details>
      ${view.messages.length === 0 && html`<${Empty} title="Nothing was said yet at this point." />`}
      <ol class="items" aria-label="Messages">${view.messages.map(
        (/** @type {any} */ message, /** @type {number} */ n) => html`
        <li class=${`item message ${message.role} ${message.made === 'summary' ? 'summary' : ''}`}
          key=${`${message.seq} ${n}`}>
          <header class="message-head"><span class="who">${message.made === 'summary' ? 'Summary' : speaker(message)}</span>
            ${message.pinned && html`<span class="tag">pinned</span>`}<span class="grow"></span><span class="dim facts">
            ${count(message.tokens)} tokens</span><span class="dim seq">${message.seq}</span></header>
          ${message.parts.map((/** @type {any} */ part, /** @type {number} */ k) => html`<${PartView} key=${k}
            part=${part} role=${message.role} />`)}
        </li>`,
      )}</ol>`
    }
  </section>`;
}

/** The files at that point, and their diff to now. @param {{store: string, id: string, at: number, head: number, route: import('../route.js').Route}} props */
function FilesThen({ store, id, at, head, route }) {
  const versions = useLoad((signal) => get(sessionPath(id, '/files'), { store }, signal), [store, id, head]);
  const later = useLoad((signal) => get(sessionPath(id, '/diff'), { store, from: at }, signal), [store, id, at, head]);
  /** @type {Map<string, any>} */ const then = new Map();
  for (const version of versions.data?.items ?? []) if (version.seq <= at) then.set(version.path, version);
  const files = [...then.values()]
    .filter((version) => version.after !== 'absent')
    .sort((one, other) => one.path.localeCompare(other.path));
  const path = route.query.path ?? files[0]?.path;
  const pick = (/** @type {string} */ name) =>
    replace(toSession(store, id, 'time', { ...route.query, at, tab: 'files', path: name }));
  const content = useLoad(
    (signal) => (path ? get(sessionPath(id, '/files/content'), { store, path, at }, signal) : Promise.resolve(null)),
    [store, id, path, at],
  );
  return html`<section class="split" aria-label="Files">
    <div><h2>As they were at ${count(at)}</h2>
      <${ProblemNote} problem=${versions.problem} />
      ${files.length === 0 && versions.data && html`<p class="dim">The session had changed no file yet.</p>`}
      <div class="file-list" role="group" aria-label="Files at this point">
        ${files.map((file) => html`<button key=${file.path} class=${`file-button ${file.path === path ? 'chosen' : ''}`}
        aria-pressed=${file.path === path} onClick=${() => pick(file.path)}><code class="path">${plain(file.path)}
        </code> <span class="dim">${words(file.change)} at ${file.seq}</span></button>`)}</div>
      ${path && content.data && (content.data.text !== undefined ? html`<h3><code class="path">${plain(path)}</code>
        </h3><${LongText} text=${content.data.text} />` : html`<p class="dim"><code>${plain(path)}
        </code> ${content.data.state === 'absent' ? 'was not there.' : 'is no text.'}</p>`)}
      ${path && content.problem && html`<p class="dim">${plain(content.problem.message)}</p>`}
    </div>
    <div><h2>From then to now</h2>
      <${ProblemNote} problem=${later.problem} />
      ${later.data && html`<${FileDiffs} files=${later.data.items} none="The files have not changed since." />`}
    </div></section>`;
}

/** @param {{store: string, id: string, at: number, onClose: () => void}} props */
function ForkDialog({ store, id, at, onClose }) {
  const [label, setLabel] = useState('');
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  // Pressing twice makes one fork.
  const key = useRef(keyOf());
  const fork = async (/** @type {Event} */ event) => {
    event.preventDefault();
    try {
      const sent = { at, ...(label.trim() ? { label: label.trim() } : {}) };
      const made = await change('POST', sessionPath(id, '/fork'), sent, { store }, key.current(sent));
      announceChange();
      onClose();
      toast({ text: `Forked at ${made.at}.` });
      go(toSession(store, made.id));
    } catch (refused) {
      setProblem(refused);
    }
  };
  return html`<${Dialog} title=${`Fork at event ${at}`} onClose=${onClose}><form onSubmit=${fork}>
    <p>A new session that shares everything up to here. This one stays as it is.</p>
    <${Field} label="Name" hint="You may leave it empty."><input value=${label}
      onInput=${(/** @type {any} */ event) => setLabel(event.target.value)} /><//>
    <${ProblemNote} problem=${problem} />
    <div class="row actions"><span class="grow"></span><button type="button" onClick=${onClose}>Cancel</button>
      <button class="primary" type="submit">Fork</button></div>
  </form><//>`;
}

/** @param {{store: string, id: string, at: number, info: any, onClose: () => void}} props */
function RewindDialog({ store, id, at, info, onClose }) {
  const [scope, setScope] = useState('both');
  const [force, setForce] = useState(false);
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const path = sessionPath(id, '/rewind');
  const dry = useLoad(() => change('POST', path, { to: String(at), scope, dry_run: true }, { store }), [id, at, scope]);
  const rewind = async () => {
    try {
      await change('POST', path, { to: String(at), scope, force }, { store });
      announceChange();
      info.reload();
      onClose();
      toast({ text: `Rewound to ${at}.`, action: { label: 'Undo', run: () => takeBack(store, id, 'undo', info) } });
    } catch (refused) {
      setProblem(refused);
    }
  };
  const plan = dry.data;
  return html`<${Dialog} title=${`Rewind to event ${at}`} onClose=${onClose} wide=${true}>
    <fieldset class="row wrap"><legend>What is moved back</legend>
      ${[
        ['both', 'Conversation and files'],
        ['chat', 'Conversation only'],
        ['files', 'Files only'],
      ].map(
        ([value, label]) =>
          html`<label class="switch" key=${value}><input type="radio" name="scope" value=${value}
            checked=${scope === value} onChange=${() => setScope(value)} /> ${label}</label>`,
      )}</fieldset>
    <${ProblemNote} problem=${dry.problem} />
    ${dry.loading && html`<${Loading} what="Trying it" />`}
    ${
      plan &&
      !dry.loading &&
      html`
      <div class="dry-run" data-ready="yes"><p>
        <strong>This would happen.</strong> The model is no longer shown ${count(plan.leaves.steps)} steps (${count(plan.leaves.messages)} messages). Nothing is erased, and you can undo it.</p>
      ${moved('Files that are moved', plan.files, (/** @type {any} */ file) => file.action)}
      ${moved('Files that stay as they are', plan.left, (/** @type {any} */ file) => file.why)}
      ${moved('Files that are in the way', plan.conflicts, (/** @type {any} */ file) => file.why)}
      ${plan.conflicts?.length > 0 && html`<label class="switch"><input type="checkbox" checked=${force}
        onChange=${(/** @type {any} */ event) => setForce(event.target.checked)} /> Overwrite them</label>`}</div>`
    }
    <${ProblemNote} problem=${problem} />
    <div class="row actions"><span class="grow"></span><button type="button" onClick=${onClose}>Cancel</button>
      <${Act} class="primary" disabled=${!plan || dry.loading || (plan.conflicts?.length > 0 && !force)}
        onPress=${rewind}>Rewind<//></div>
  <//>`;
}

/** @param {string} title @param {any[]} files @param {(file: any) => string} say */
function moved(title, files, say) {
  if (!files?.length) return null;
  return html`<h3>${title}</h3><ul class="plain-list">${files.map((file) => html`<li key=${file.path}>
    <code class="path">${plain(file.path)}</code> <span class="dim">${plain(say(file))}</span></li>`)}</ul>`;
}

/** Undoes the last rewind, or redoes it. @param {string} store @param {string} id @param {'undo' | 'redo'} way @param {any} info */
async function takeBack(store, id, way, info) {
  await change('POST', sessionPath(id, `/rewind/${way}`), {}, { store });
  announceChange();
  info.reload();
  toast({ text: way === 'undo' ? 'The rewind is taken back.' : 'It is rewound again.' });
}
