// @ts-check
// Start: a task for an agent, or a flow with its variables.
import { html, useEffect, useRef, useState } from '../html.js';
import { change, get, keyOf } from '../api.js';
import { Empty, Field, ProblemNote } from '../parts.js';
import { go, toSession } from '../route.js';
import { announceChange, homeStore, storeName, useApp, useLoad } from '../state.js';
import { plain } from '../text.js';

const MODES = [
  ['', 'As configured'],
  ['confirm-sensitive', 'Ask before changes and commands'],
  ['confirm-all', 'Ask before every call'],
  ['yolo', 'Never ask'],
];

/** The value that a field has. @param {any} event */
const valueOf = (event) => event.target.value;

export function Start() {
  const app = useApp();
  const [store, setStore] = useState('');
  const [kind, setKind] = useState('run');
  const chosen = store || homeStore()?.key || '';
  useEffect(() => {
    document.title = 'Start · Stepwell';
  }, []);
  const load = useLoad(
    async (signal) => {
      const [agents, models, flows, server] = await Promise.all(
        ['/agents', '/models', '/flows', '/server'].map((path) => get(path, { store: chosen }, signal)),
      );
      return { agents: agents.items, models, flows: flows.items, server };
    },
    [chosen],
  );
  const { agents = [], models, flows = [], server } = load.data ?? {};
  return html`<header class="page-head"><h1>Start</h1></header>
    <${ProblemNote} problem=${load.problem} retry=${load.reload} />
    ${server && !server.may_start && html`<${Empty} title="This server starts nothing here.">
      <p class="dim">It only shows this project.</p><//>`}
    <div class="card start">
      <div class="row wrap">
        <div class="segments" role="group" aria-label="What to start">
          <button aria-pressed=${kind === 'run'} onClick=${() => setKind('run')}>A task</button>
          <button aria-pressed=${kind === 'flow'} onClick=${() => setKind('flow')}>A flow</button></div>
        ${app.stores.length > 1 && html`<select aria-label="Project" value=${chosen}
          onChange=${(/** @type {any} */ event) => setStore(valueOf(event))}>
          ${app.stores.map((it) => html`<option value=${it.key}>${storeName(it.key)}</option>`)}</select>`}
      </div>
      ${kind === 'run' ? html`<${RunForm} store=${chosen} agents=${agents} models=${models}
        server=${server} />` : html`<${FlowForm} store=${chosen} flows=${flows} models=${models} server=${server} />`}
    </div>`;
}

/** Settings of a run that differ from the configuration. @param {{how: any, set: (how: any) => void, models: any, server: any, agents?: any[]}} props */
function How({ how, set, models, server, agents }) {
  const put = (/** @type {string} */ name) => (/** @type {any} */ event) => set({ ...how, [name]: valueOf(event) });
  const known = [...new Set([...(models?.favourites ?? []), ...(models?.recent ?? [])])].filter(
    (it) => !it.startsWith('script:'),
  );
  return html`<div class="form-grid">
    ${agents && html`<${Field} label="Agent"><select value=${how.agent ?? ''} onChange=${put('agent')}>
      <option value="">As configured</option>${agents.map((it) => html`<option value=${it.name}>
      ${it.name}${it.read_only ? ' (reads only)' : ''}</option>`)}</select><//>`}
    <${Field} label="Model"><input list="models" placeholder="As configured" value=${how.model ?? ''}
      onInput=${put('model')} /><datalist id="models">${known.map((it) => html`<option value=${it}></option>`)}
      </datalist><//>
    <${Field} label="When to ask you"><select value=${how.mode ?? ''} onChange=${put('mode')}>
      ${MODES.filter(([mode]) => mode !== 'yolo' || server?.may_yolo).map(([mode, label]) => html`<option value=${mode}>
      ${label}</option>`)}</select><//>
    <${Field} label="Budget in dollars"><input type="number" min="0" step="0.01" placeholder="None"
      value=${how.budget ?? ''} onInput=${put('budget')} /><//>
    <${Field} label="Most steps"><input type="number" min="1" step="1" placeholder="As configured"
      value=${how.max_steps ?? ''} onInput=${put('max_steps')} /><//>
  </div>`;
}

/** The settings that have a value. @param {any} how */
function given(how) {
  const set = Object.fromEntries(Object.entries(how).filter(([, value]) => value !== '' && value !== undefined));
  if (set.max_steps) set.max_steps = Number(set.max_steps);
  return set;
}

/** @param {{store: string, agents: any[], models: any, server: any}} props */
function RunForm({ store, agents, models, server }) {
  const [task, setTask] = useState('');
  const field = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => field.current?.focus(), []);
  const [how, setHow] = useState(/** @type {any} */ ({}));
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const [busy, setBusy] = useState(false);
  const key = useRef(keyOf());
  const start = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      const sent = { task, ...given(how) };
      // A repeated request does not start a second run.
      const made = await change('POST', '/sessions', sent, { store }, key.current([store, sent]));
      announceChange();
      go(toSession(store, made.id));
    } catch (refused) {
      setProblem(refused);
      setBusy(false);
    }
  };
  return html`<form onSubmit=${start}>
    <${Field} label="Task"><textarea ref=${field} rows="5" required value=${task}
      placeholder="What should the agent do?" onInput=${(/** @type {any} */ event) => setTask(valueOf(event))}
      onKeyDown=${(/** @type {KeyboardEvent} */ event) => {
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) start(event);
      }}></textarea><//>
    <${How} how=${how} set=${setHow} models=${models} server=${server} agents=${agents} />
    <${ProblemNote} problem=${problem} />
    <div class="row actions"><span class="dim hint">Ctrl+Enter starts</span><span class="grow"></span>
      <button class="primary" type="submit" disabled=${busy || !task.trim() || !server?.may_start}>
      ${busy ? 'Starting…' : 'Start'}</button></div>
  </form>`;
}

/** @param {{store: string, flows: any[], models: any, server: any}} props */
function FlowForm({ store, flows, models, server }) {
  const [path, setPath] = useState('');
  const [values, setValues] = useState(/** @type {Record<string, string>} */ ({}));
  const [how, setHow] = useState(/** @type {any} */ ({}));
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const key = useRef(keyOf());
  const flow = flows.find((it) => it.path === path) ?? flows[0];
  if (!flow)
    return html`<${Empty} title="This project has no flow."><p
      class="dim">Specs are found in its folder, in <code>flows</code> and in <code>.stepwell/flows</code>.</p><//>`;
  const start = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setProblem(null);
    try {
      const variables = Object.fromEntries(
        flow.variables
          .map((/** @type {any} */ it) => [it.name, values[it.name] ?? ''])
          .filter((/** @type {string[]} */ [, value]) => value !== ''),
      );
      const sent = { path: flow.path, variables, ...given(how) };
      const made = await change('POST', '/flows', sent, { store }, key.current([store, sent]));
      announceChange();
      go(toSession(store, made.id));
    } catch (refused) {
      setProblem(refused);
    }
  };
  return html`<form onSubmit=${start}>
    <${Field} label="Flow"><select value=${flow.path} onChange=${(/** @type {any} */ event) => {
      setPath(valueOf(event));
      setValues({});
    }}>${flows.map((it) => html`<option value=${it.path}>${it.name} (${it.pattern}, ${it.path})</option>`)}</select><//>
    <div class="form-grid">${flow.variables.map((/** @type {any} */ it) => html`<${Variable}
      key=${`${flow.path} ${it.name}`} variable=${it} value=${values[it.name] ?? ''}
      set=${(/** @type {string} */ value) => setValues({ ...values, [it.name]: value })} />`)}</div>
    <${How} how=${how} set=${setHow} models=${models} server=${server} />
    <${ProblemNote} problem=${problem} />
    <div class="row actions"><span class="grow"></span><button class="primary" type="submit"
      disabled=${!server?.may_start}>Start</button></div>
  </form>`;
}

/** @param {{variable: any, value: string, set: (value: string) => void}} props */
function Variable({ variable, value, set }) {
  const put = (/** @type {any} */ event) => set(valueOf(event));
  const usual =
    variable.default === undefined
      ? ''
      : typeof variable.default === 'string'
        ? variable.default
        : JSON.stringify(variable.default);
  const label = `${variable.name}${variable.required ? '' : ' (optional)'}`;
  const choices = variable.enum;
  const field = choices
    ? html`<select value=${value} required=${variable.required} onChange=${put}><option value="">${usual || 'Choose'}
      </option>${choices.map((/** @type {any} */ it) => html`<option value=${String(it)}>${String(it)}</option>`)}
      </select>`
    : variable.type === 'boolean' || variable.type === 'bool'
      ? html`<select value=${value} required=${variable.required} onChange=${put}><option value="">${usual || 'Choose'}
        </option><option value="true">true</option><option value="false">false</option></select>`
      : html`<input type=${['integer', 'number', 'float'].includes(variable.type) ? 'number' : 'text'} step="any"
        required=${variable.required} placeholder=${usual} value=${value} onInput=${put} />`;
  return html`<${Field} label=${label} hint=${plain(variable.description ?? '')}>${field}<//>`;
}
