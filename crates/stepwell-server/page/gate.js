// @ts-check
// A question that waits for a person: the complete call, and the possible answers.
import { html, useRef, useState } from './html.js';
import { change, keyOf, resumeSession, sessionPath } from './api.js';
import { allLines, Diff } from './diff.js';
import { useTyping } from './typing.js';
import { Act, Age, LongText, ProblemNote, toast } from './parts.js';
import { announceChange, dropGate, gateName, loadGates, state, storeName } from './state.js';
import { toSession } from './route.js';
import { stands, useStill } from './still.js';
import { exact, firstLine, moment } from './text.js';

/** The arguments of a call, if they can be parsed. @param {string} text */
export function readArguments(text) {
  try {
    const value = JSON.parse(text);
    return value && typeof value === 'object' ? value : null;
  } catch {
    return null;
  }
}

/** A text of any length, with every character visible. @param {{text: string}} props */
function Whole({ text }) {
  return html`<${LongText} text=${text} render=${(/** @type {string} */ shown) => html`<pre class="plain" dir="auto"
    tabindex="0">${exact(shown)}</pre>`} />`;
}

/** Was the diff too long to be recorded with the question? @param {string} detail */
function isCut(detail) {
  return /\n… \d+ more lines?\s*$/.test(detail);
}

/** The complete call: nothing is left out or hidden. @param {{call: any}} props */
export function AskedCall({ call }) {
  const args = readArguments(call.arguments);
  if (!args || Array.isArray(args)) return html`<${Whole} text=${args ? JSON.stringify(args, null, 2) : call.arguments} />`;
  const { command, path, content, old_text: before, new_text: after, ...rest } = args;
  const others = /** @type {Record<string, any>} */ (rest);
  /** Shows a text; other values are shown as JSON. @param {string} name @param {any} value @param {(text: string) => any} show */
  const part = (name, value, show) => {
    if (typeof value === 'string') return show(value);
    if (value !== undefined) others[name] = value;
    return null;
  };
  const shown = [
    part('command', command, (it) => html`<pre class="command" tabindex="0" aria-label="Command"><span aria-hidden="true"
      class="dim">$ </span>${exact(it)}</pre>`),
    part('path', path, (it) => html`<p class="path-line"><code class="path">${exact(it)}</code></p>`),
    call.detail && html`<${Diff} text=${call.detail} whole=${true} label="What would change" />`,
  ];
  // The diff shows the effect of the arguments, unless it was too long.
  if (!call.detail || isCut(call.detail)) {
    if (call.detail) shown.push(html`<p class="note-line">The difference is too long to show. This is all of it:</p>`);
    if (typeof before === 'string' && typeof after === 'string') {
      const lines = [...allLines('del', before), ...allLines('add', after)];
      shown.push(html`<${Diff} lines=${lines} whole=${true} label="What would change" />`);
    } else {
      shown.push(part('old_text', before, (it) => html`<${Whole} text=${it} />`));
      shown.push(part('new_text', after, (it) => html`<${Whole} text=${it} />`));
    }
    shown.push(part('content', content, (it) => html`<${Whole} text=${it} />`));
  }
  const isAlone = !shown.some(Boolean);
  if (isAlone || Object.keys(others).length) shown.push(html`<${Whole} text=${JSON.stringify(others, null, 2)} />`);
  return html`${shown}`;
}

/**
 * Answers exactly the question that was shown, and resumes the session if it is not running.
 * @param {import('./state.js').Gate} gate @param {{choice: string, reason?: string} | {text: string}} given
 * @param {string} key a repeated request counts as the same answer
 */
export async function giveAnswer(gate, given, key) {
  const store = gate.store;
  const done = await change(
    'POST',
    sessionPath(gate.session_id, `/gates/${encodeURIComponent(gate.id)}`),
    { ...given, seen: gate.seq },
    { store },
    key,
  );
  dropGate(gate);
  await loadGates().catch(() => undefined);
  announceChange();
  if (!done.counts) {
    toast({ text: 'It is on record, but it does not count here: whoever runs the session has to allow it. The question is asked again.' });
    return;
  }
  // A stopped session stays stopped after an answer.
  if (done.stopped) {
    const resume = async () => {
      await resumeSession(store, done.resume);
      announceChange();
      toast({ text: 'Resumed.' });
    };
    const may = state.server?.may_start;
    toast({ text: 'Answered. The session stays stopped.', action: may ? { label: 'Resume', run: resume } : undefined });
    return;
  }
  const waits = state.gates.some((it) => it.session_id === gate.session_id);
  if (done.goes_on || waits || !state.server?.may_start) {
    toast({ text: done.goes_on ? 'Answered. The run goes on.' : 'Answered.' });
    return;
  }
  await resumeSession(store, done.resume);
  toast({ text: 'Answered, and resumed.' });
  announceChange();
}

const LOOKS = /** @type {Record<string, string>} */ ({ once: 'primary', deny: 'quiet-bad', never: 'quiet-bad' });

/** Does an answer allow the call? @param {string} choice */
function isLeave(choice) {
  return choice === 'once' || choice === 'always';
}

/** @param {{gate: import('./state.js').Gate, task?: string, inSession?: boolean, stopped?: boolean}} props */
export function GateCard({ gate, task, inSession, stopped }) {
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const [denying, setDenying] = useState('');
  const [text, setText] = useState('');
  // While an answer is on its way, the keys no longer belong to the form.
  const [sending, setSending] = useState(false);
  const card = useRef(/** @type {HTMLElement | null} */ (null));
  const still = useStill(card);
  const waits = still ? undefined : 'true';
  const key = useRef(keyOf());
  const call = gate.call;
  const answer = async (/** @type {{choice: string, reason?: string} | {text: string}} */ given) => {
    // A call can only be allowed after all of it was shown.
    const unseen = 'choice' in given && isLeave(given.choice) && card.current?.querySelector('[data-more]');
    if (unseen) {
      unseen.scrollIntoView({ block: 'center' });
      toast({ text: 'There is more of it: show all of it first.' });
      return;
    }
    try {
      setProblem(null);
      setSending(true);
      await giveAnswer(gate, given, key.current(given));
    } catch (refused) {
      // Another answer came first. The card disappears, so a toast says so.
      if (/** @type {any} */ (refused).status === 409) toast({ problem: refused });
      else setProblem(refused);
      loadGates().catch(() => undefined);
    } finally {
      setSending(false);
    }
  };
  const typing = useTyping((typed) => {
    setText(typed);
    setDenying('deny');
  });
  const may = state.server?.may_change && !sending;
  return html`
    <article ref=${card} class="card gate-card" tabindex="0" data-gate=${gateName(gate)} data-still=${still ? 'yes' : undefined}
      onClickCapture=${aimed}
      data-session=${toSession(gate.store, gate.session_id)}
      aria-label=${`Question: ${firstLine(gate.prompt, 80)}`}>
      <header class="row wrap">
        <span class="badge ask">${call ? call.tool : 'question'}</span>
        ${call && html`<span class=${`tag effect-${call.effect}`}>${call.effect}</span>`}
        ${!inSession && html`<a class="gate-session" href=${toSession(gate.store, gate.session_id)}>
          ${firstLine(task || gate.session_id, 90)}</a>`}
        <span class="grow"></span>
        ${state.stores.length > 1 && !inSession && html`<span class="dim">${storeName(gate.store)}</span>`}
        <span class="dim"><${Age} at=${gate.asked_at} /></span>
      </header>
      ${call ? html`<${AskedCall} call=${call} />` : html`<${LongText} text=${gate.prompt}
        render=${(/** @type {string} */ text) => html`<div class="words" dir="auto">${exact(text)}</div>`} />`}
      ${gate.asker && html`<p class="dim">Asked by <a href=${toSession(gate.store, gate.asker)}>
        ${firstLine(gate.task || gate.asker, 120)}</a></p>`}
      ${gate.deadline && html`<p class="dim">Until ${moment(gate.deadline)}${gate.default ? `, then: ${gate.default}` : ''}
        </p>`}
      ${call?.holds_secret && html`<p
        class="note-line">Its arguments hold a secret. It can be allowed only at the terminal that runs it.</p>`}
      ${stopped && html`<p class="note-line">A person stopped this session. Your answer is kept, and the session stays stopped until somebody resumes it.</p>`}
      <${ProblemNote} problem=${problem} />
      ${sending && html`<p class="dim" role="status">Sending the answer…</p>`}
      ${!may && !sending && html`<p class="dim">You may look, but not answer.</p>`}
      ${
        may &&
        call &&
        !denying &&
        html`<div class="row wrap actions" onKeyDown=${typing} onKeyUp=${typing}>
        ${(gate.offers ?? []).map(
          ({ choice, label }) => html`
          <${Act} key=${choice} waits=${!still} class=${LOOKS[choice] ?? ''}
            onPress=${() => (isLeave(choice) ? answer({ choice }) : setDenying(choice))}>${exact(label)}<//>`,
        )}
      </div>`
      }
      ${
        may &&
        call &&
        denying &&
        html`<form class="row wrap actions" onSubmit=${(/** @type {Event} */ event) => {
          event.preventDefault();
          answer({ choice: denying, ...(text.trim() && { reason: text.trim() }) });
        }}>
        <input class="grow" autofocus ref=${focusOnce} aria-label="Reason, for the model"
          placeholder="Why not? The model is told." value=${text}
          onInput=${(/** @type {any} */ event) => setText(event.target.value)}
          onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === 'Escape' && setDenying('')} />
        <button class="bad" type="submit" aria-disabled=${waits}>
          ${exact(gate.offers?.find((it) => it.choice === denying)?.label ?? 'Deny')}</button>
        <button type="button" onClick=${() => setDenying('')}>Back</button>
      </form>`
      }
      ${
        may &&
        !call &&
        html`<form class="row wrap actions" onSubmit=${(/** @type {Event} */ event) => {
          event.preventDefault();
          answer({ text: text.trim() || gate.default || '' });
        }}>
        <input class="grow" aria-label="Your answer"
          placeholder=${gate.default ? `${gate.default} (if left empty)` : 'Your answer'} value=${text}
          onInput=${(/** @type {any} */ event) => setText(event.target.value)} />
        <button class="primary" type="submit" aria-disabled=${waits} disabled=${!text.trim() && !gate.default}>Answer</button>
      </form>`
      }
    </article>`;
}

/** Accepts a click only if it was aimed at this card. A key press has no position. @param {MouseEvent} event */
function aimed(event) {
  const button = /** @type {HTMLElement} */ (event.target).closest('.actions button');
  if (!button || event.detail === 0 || stands(/** @type {HTMLElement} */ (event.currentTarget))) return;
  event.preventDefault();
  event.stopPropagation();
  toast({ text: 'This question has just come to this place. Look at it, and press again.' });
}

/** Puts the focus into a field when it appears. @param {HTMLElement | null} element */
function focusOnce(element) {
  if (element && !element.dataset.seen) {
    element.dataset.seen = 'yes';
    element.focus();
  }
}
