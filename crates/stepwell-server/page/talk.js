// @ts-check
// A conversation on the screen: messages, tool calls folded, notes between them.
import { html, Component, useEffect, useState } from './html.js';
import { get, sessionPath } from './api.js';
import { answerWords, nameOf } from './conversation.js';
import { FileDiffs } from './diff.js';
import { AskedCall, readArguments } from './gate.js';
import { markdown } from './markdown.js';
import { Loading, LongText, Status } from './parts.js';
import { toSession } from './route.js';
import { useLoad } from './state.js';
import { age, duration, firstLine, moment, money, plain, short, words } from './text.js';

/** @typedef {{store: string, id: string, unfold: boolean, lanes: boolean, flow?: boolean, seq?: number}} Place */

const ROLES = { user: 'You', assistant: 'Agent', system: 'Instructions', context: 'Context', tool: 'Tool' };

/** Redrawn only when its item changed, so that a long conversation stays fast. */
export class ItemView extends Component {
  /** @param {any} next */
  shouldComponentUpdate(next) {
    const { item, version, place } = /** @type {any} */ (this).props;
    return (
      next.item !== item ||
      next.version !== version ||
      next.place.unfold !== place.unfold ||
      next.place.lanes !== place.lanes ||
      next.place.seq !== place.seq ||
      next.place.flow !== place.flow
    );
  }

  /** @param {{item: import('./conversation.js').Item, place: Place}} props */
  render({ item, place }) {
    const look = `${item.aside ? 'aside' : ''} ${place.seq === item.seq ? 'target' : ''}`;
    const body =
      item.type === 'message'
        ? html`<${MessageView} item=${item} place=${place} />`
        : item.type === 'gate'
          ? html`<${GateNote} item=${item} />`
          : html`<${Note} item=${item} place=${place} />`;
    return html`<li id=${`e${item.seq}`} class=${`item ${item.type} ${item.role ?? ''} ${look}`}>${body}</li>`;
  }
}

/** @param {{item: import('./conversation.js').Item, place: Place}} props */
function MessageView({ item, place }) {
  const role = item.role ?? 'assistant';
  const said = (item.parts ?? []).length > 0;
  const text = (item.parts ?? []).map((part, n) => html`<${PartView} key=${n} part=${part} role=${role} />`);
  const head = html`<header class="message-head">
    <span class="who">${role === 'user' && place.flow ? 'Prompt' : (ROLES[/** @type {'user'} */ (role)] ?? role)}</span>
    ${place.lanes && item.lane && html`<span class="tag">${item.lane}</span>`}
    ${item.aside && html`<span class="tag">rewound</span>`}
    <span class="grow"></span>
    ${item.usage && html`<span class="dim facts">
      ${short((item.usage.input ?? 0) + (item.usage.output ?? 0))} tokens${item.cost !== undefined ? ` · ${money(Number(item.cost))}` : ''}
      </span>`}
    <a class="dim seq" href=${toSession(place.store, place.id, 'time', { at: item.seq })}
      title=${`${moment(item.at)}. Travel to this point`}>${item.seq}<span class="unseen">: travel to this point</span>
      </a>
  </header>`;
  return html`
    ${(said || role !== 'assistant') && head}
    ${role === 'system' || role === 'context' ? html`<details class="fold"><summary>${role === 'system' ? 'Instructions that the model gets' : 'Added by the program, not by you'}</summary>${text}</details>` : text}
    ${(item.calls ?? []).map((call) => html`<${CallView} key=${call.id} call=${call} place=${place} />`)}`;
}

/** The current answer, not recorded yet. @param {{speech: import('./log.js').Speech, lanes: boolean}} props */
export function Speaking({ speech, lanes }) {
  return html`<li class="item message speaking" aria-busy="true">
    <header class="message-head"><span class="who">${ROLES.assistant}</span>
      ${lanes && html`<span class="tag">${speech.lane}</span>`}</header>
    ${speech.thinking && html`<${PartView} part=${{ thinking: { text: speech.thinking } }} />`}
    ${speech.text && html`<${PartView} part=${{ text: { text: speech.text } }} />`}</li>`;
}

/** @param {{part: any, role?: string}} props */
export function PartView({ part, role = 'assistant' }) {
  if (part.text)
    return html`<${LongText} text=${part.text.text} render=${role === 'user' ? (/** @type {string} */ text) => html`<div
      class="words" dir="auto">${plain(text)}</div>` : markdown} />`;
  if (part.thinking)
    return html`<details class="fold thinking"><summary>Thinking</summary>
      <${LongText} text=${part.thinking.text} render=${markdown} /></details>`;
  if (part.image) return html`<${Picture} image=${part.image} />`;
  if (part.tool_call)
    return html`<${CallView} call=${{ ...part.tool_call, state: '', files: [] }}
      place=${{ store: '', id: '', unfold: false, lanes: false }} />`;
  if (part.tool_result)
    return html`<details class="fold call" open><summary><span class="call-name">result</span></summary>
      <${LongText} text=${part.tool_result.text} /></details>`;
  return null;
}

const PICTURES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

/** A picture that is part of the session. A picture at a URL is named, never loaded. @param {{image: any}} props */
function Picture({ image }) {
  const isInside = PICTURES.includes(image.media_type) && /^[A-Za-z0-9+/=\s]+$/.test(image.data);
  if (!isInside) return html`<p class="dim">A picture (${plain(image.media_type)}): ${firstLine(image.data, 120)}</p>`;
  return html`<img class="picture" src=${`data:${image.media_type};base64,${image.data}`}
    alt="Picture of the conversation" loading="lazy" />`;
}

/** A call in one line. @param {import('./conversation.js').Call} call */
function about(call) {
  const args = readArguments(call.arguments);
  if (!args) return firstLine(call.arguments, 100);
  const main = args.command ?? args.path ?? args.task ?? args.pattern ?? args.query ?? args.action;
  return main !== undefined
    ? firstLine(typeof main === 'string' ? main : JSON.stringify(main), 100)
    : firstLine(JSON.stringify(args), 100);
}

/** @param {{call: import('./conversation.js').Call, place: Place}} props */
export function CallView({ call, place }) {
  const [open, setOpen] = useState(place.unfold);
  useEffect(() => setOpen(place.unfold), [place.unfold]);
  return html`<details class=${`fold call ${call.state}`} open=${open}
    onToggle=${(/** @type {any} */ event) => setOpen(event.currentTarget.open)}>
    <summary>
      <span class="call-name">${plain(call.name)}</span>
      <span class="call-about clip">${about(call)}</span>
      <span class="grow"></span>
      ${call.files.length > 0 && html`<span class="tag changed">
        ${call.files.length === 1 ? '1 file' : `${call.files.length} files`}</span>`}
      ${call.duration !== undefined && call.duration > 0 && html`<span class="dim facts">
        ${duration(call.duration / 1000)}</span>`}
      ${call.state && html`<span class=${`outcome ${call.state}`}>${words(call.state)}</span>`}
    </summary>
    ${open && html`<${CallDetails} call=${call} place=${place} />`}
  </details>
  ${call.child && place.id && html`<${Subagent} store=${place.store} id=${call.child} state=${call.state} />`}`;
}

/** @param {{call: import('./conversation.js').Call, place: Place}} props */
function CallDetails({ call, place }) {
  return html`
    ${(call.files.length === 0 || !place.id || readArguments(call.arguments)?.command) && html`<${AskedCall}
      call=${{ tool: call.name, arguments: call.arguments }} />`}
    ${call.files.length > 0 && place.id && html`<${CallFiles} files=${call.files} place=${place} />`}
    ${call.result === undefined && call.tail && html`<div class="result"><${LongText} text=${call.tail} /></div>`}
    ${call.result !== undefined && html`<div class=${call.isError ? 'result failed' : 'result'}>
      <${LongText} text=${call.result} first=${6000} /></div>`}
    ${(call.images ?? []).map((image, n) => html`<${Picture} key=${n} image=${image} />`)}`;
}

/** The lines that a call changed. @param {{files: {path: string, seq: number}[], place: Place}} props */
function CallFiles({ files, place }) {
  const [from, to] = [Math.min(...files.map((file) => file.seq)) - 1, Math.max(...files.map((file) => file.seq))];
  const load = useLoad(
    (signal) => get(sessionPath(place.id, '/diff'), { store: place.store, from, to }, signal),
    [place.id, from, to],
  );
  if (!load.data)
    return load.problem
      ? html`<p class="dim">${files.map((file) => file.path).join(', ')}</p>`
      : html`<${Loading} what="Changes" />`;
  return html`<${FileDiffs} files=${load.data.items} />`;
}

/**
 * A subagent's session, inline; requested again when the state of its call changes.
 * @param {{store: string, id: string, state: string}} props
 */
function Subagent({ store, id, state }) {
  const load = useLoad((signal) => get(sessionPath(id), { store }, signal), [id, state], { live: true });
  const session = load.data;
  if (!session) return html`<p class="subagent dim"><a href=${toSession(store, id)}>Subagent ${id}</a></p>`;
  return html`<div class="subagent"><span class="badge">subagent</span> <a href=${toSession(store, id)}>
    ${firstLine(session.task, 90)}</a>
    <span class="grow"></span><span class="dim">${session.agent} · ${session.steps} steps · ${money(session.cost)}
      </span> <${Status} session=${session} /></div>`;
}

/** @param {{item: import('./conversation.js').Item}} props */
function GateNote({ item }) {
  const { body, answer } = item;
  return html`<div class=${`gate-note ${answer ? 'answered' : 'open'}`}>
    <span class="badge ask">${body.call ? `asked: ${body.call.tool}` : 'asked'}</span>
    <span class="clip">${firstLine(body.prompt, 140)}</span>
    <span class="grow"></span>
    ${answer ? html`<span><strong>${plain(answerWords(answer.answer))}
      </strong> <span class="dim">by ${plain(nameOf(answer.who))}, ${age(answer.at)}</span>
      </span>` : html`<span class="dim">waits for an answer</span>`}
  </div>`;
}

/** @param {{item: import('./conversation.js').Item, place: Place}} props */
function Note({ item, place }) {
  if (item.word === 'said') {
    return html`<div class="said"><span class="badge">said</span> <span class="words" dir="auto">
      ${plain(item.text ?? '')}</span> <span
      class="dim">by ${plain(nameOf(item.body.who))}, heard before the next call</span></div>`;
  }
  const summary = item.word === 'compacted' && item.body.summary;
  return html`<div class=${`note-row ${String(item.word).replaceAll(' ', '-')}`}>
    <span class="note-word">${words(item.word)}</span> <span class="clip" dir="auto">${firstLine(item.text ?? '', 300)}
      </span>
    <span class="grow"></span><a class="dim seq" href=${toSession(place.store, place.id, 'time', { at: item.seq })}
      title=${moment(item.at)}>${item.seq}<span class="unseen">: travel to this point</span></a>
    ${summary && html`<details class="fold"><summary>Summary</summary><${LongText} text=${summary} render=${markdown} />
      </details>`}
  </div>`;
}
