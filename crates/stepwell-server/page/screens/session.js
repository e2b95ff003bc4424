// @ts-check
// Session: its conversation as it grows, and its controls.
import { html, useEffect, useLayoutEffect, useRef, useState } from '../html.js';
import { change, get, keyOf, resumeSession, sessionPath } from '../api.js';
import { GateCard } from '../gate.js';
import { moveFocus, useKeys } from '../keys.js';
import { SessionLog } from '../log.js';
import { Act, Loading, ProblemNote, toast } from '../parts.js';
import { announceChange, gateName, loadGates, retryOffline, update, useApp } from '../state.js';
import { ItemView, Speaking } from '../talk.js';
import { isHeld, SessionFrame, useSession } from '../frame.js';
import { count } from '../text.js';
import { Aside } from './aside.js';

/**
 * A session's log, redrawn when it grows.
 * @param {string} store @param {string} id @param {number | undefined} wanted an event that must be loaded
 * @param {(info: any) => void} onInfo
 */
function useLog(store, id, wanted, onInfo) {
  const [, draw] = useState(0);
  const [log, setLog] = useState(/** @type {SessionLog | null} */ (null));
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const [gone, setGone] = useState(false);
  const [turn, again] = useState(0);
  useEffect(() => {
    const made = new SessionLog(store, id, {
      onChange: () => draw((n) => n + 1),
      onInfo,
      onGone: () => setGone(true),
      onLink: (online) => update({ online }),
    });
    setLog(made);
    setProblem(null);
    made.load(wanted).catch(setProblem);
    return () => made.close();
  }, [store, id, wanted, turn]);
  useEffect(() => retryOffline(problem, () => again((n) => n + 1)), [problem]);
  return { log: log?.ready ? log : null, problem, gone };
}

/** @param {{route: import('../route.js').Route}} props */
export function Session({ route }) {
  const app = useApp();
  const { store = '', id = '' } = route;
  const wanted = route.query.seq ? Number(route.query.seq) : undefined;
  const info = useSession(store, id);
  const [lane, setLane] = useState('');
  const [unfold, setUnfold] = useState(false);
  const [showAside, setShowAside] = useState(false);
  const waiting = useRef(0);
  const told = (/** @type {any} */ session) => {
    info.merge(session);
    // The sidebar is requested again, once for many events.
    waiting.current ||= setTimeout(() => {
      waiting.current = 0;
      info.reload();
      loadGates().catch(() => undefined);
    }, 400);
  };
  const { log, problem, gone } = useLog(store, id, wanted, told);
  const end = useRef(/** @type {HTMLElement | null} */ (null));
  const isAtEnd = useRef(true);
  const shown = useRef(0);
  useEffect(() => {
    const scrolled = () => {
      isAtEnd.current = (end.current?.getBoundingClientRect().bottom ?? 0) < window.innerHeight + 160;
    };
    window.addEventListener('scroll', scrolled, { passive: true });
    return () => window.removeEventListener('scroll', scrolled);
  }, []);
  const gates = app.gates.filter((gate) => gate.store === store && gate.session_id === id);
  const asked = gates.map(gateName).join();
  const version = log?.talk.version;
  const lastSeq = log?.last;
  useLayoutEffect(() => {
    if (!log) return;
    if (wanted && shown.current !== wanted) {
      shown.current = wanted;
      document.getElementById(`e${nearest(log.talk.items, wanted)}`)?.scrollIntoView({ block: 'center' });
      isAtEnd.current = false;
      return;
    }
    if (isAtEnd.current && !wanted) end.current?.scrollIntoView({ block: 'end' });
  }, [version, lastSeq, log?.heard, Boolean(info.data), asked]);
  const session = info.data;
  useKeys(
    {
      o: () => setUnfold((it) => !it),
      j: () => moveFocus('.gate-card', 1),
      k: () => moveFocus('.gate-card', -1),
    },
    [],
  );
  const items = (log?.talk.items ?? []).filter(
    (/** @type {any} */ item) => (!lane || !item.lane || item.lane === lane) && (showAside || !item.aside),
  );
  const aside = (log?.talk.items ?? []).filter((/** @type {any} */ item) => item.aside).length;
  const lanes = log ? [...log.talk.lanes] : [];
  const place = {
    store,
    id,
    unfold,
    lanes: lanes.length > 1 && !lane,
    flow: Boolean(session?.flow),
    seq: wanted ? nearest(log?.talk.items ?? [], wanted) : undefined,
  };
  return html`<${SessionFrame} info=${info} route=${route} gone=${gone}>
    <div class="columns">
      <div class="talk">
        <div class="row wrap talk-tools">
          ${
            lanes.length > 1 &&
            html`<select aria-label="Conversation" value=${lane}
              onChange=${(/** @type {any} */ event) => setLane(event.target.value)}>
            <option value="">All conversations</option>${lanes.map((it) => html`<option value=${it}>${it}</option>`)}
              </select>`
          }
          <button class="small" aria-pressed=${unfold} onClick=${() => setUnfold(!unfold)}>
            ${unfold ? 'Fold tool calls' : 'Unfold tool calls'}</button>
          ${aside > 0 && html`<button class="small" aria-pressed=${showAside} onClick=${() => setShowAside(!showAside)}>
            ${showAside ? 'Hide' : 'Show'} ${count(aside)} that a rewind set aside</button>`}
        </div>
        <${ProblemNote} problem=${problem} />
        ${!log && !problem && html`<${Loading} />`}
        ${log && log.first > 1 && html`<${Act} class="more"
          onPress=${() => log.earlier()}>Show earlier: ${count(log.first - 1)} events<//>`}
        <ol class="items" aria-label="Conversation" data-last=${log?.last ?? 0}>
          ${items.map((/** @type {any} */ item) => html`<${ItemView} key=${item.seq} item=${item}
            version=${item.version} place=${place} />`)}
          ${[...(log?.speaking.values() ?? [])]
            .filter((speech) => !lane || speech.lane === lane)
            .map((speech) => html`<${Speaking} key=${`speaking ${speech.lane}`} speech=${speech} lanes=${place.lanes} />`)}
        </ol>
        ${log && !log.isEnd && html`<${Act} class="more" onPress=${() => log.later()}>Show later events<//>`}
        ${gates.map((gate) => html`<${GateCard} key=${gateName(gate)} gate=${gate} inSession=${true}
          stopped=${session?.stopped} />`)}
        ${session?.status === 'running' && gates.length === 0 && html`<p class="working" role="status">
          <span class="pulse" aria-hidden="true"></span>The agent works.</p>`}
        ${session && app.server?.may_change && !gone && html`<${Composer} session=${session} store=${store}
          lanes=${lanes} />`}
        <div class="end" ref=${end}></div>
      </div>
      ${session && html`<${Aside} session=${session} store=${store} onLane=${setLane} />`}
    </div>
  <//>`;
}

/** The item that shows an event. @param {any[]} items @param {number} seq */
function nearest(items, seq) {
  let found = items.length ? items[0].seq : 0;
  for (const item of items) if (item.seq <= seq) found = item.seq;
  return found;
}

/** The input for messages to the session. @param {{session: any, store: string, lanes: string[]}} props */
function Composer({ session, store, lanes }) {
  const app = useApp();
  const [text, setText] = useState('');
  const [lane, setLane] = useState('');
  const [now, setNow] = useState(false);
  const isRunning = isHeld(session);
  const isFlow = Boolean(session.flow);
  const mayResume = app.server?.may_start && session.driver !== 'external';
  // A repeated request sends the message once.
  const key = useRef(keyOf());
  // Pressing twice sends it once.
  const busy = useRef(false);
  const send = async () => {
    if (busy.current) return;
    busy.current = true;
    await sendWords().finally(() => {
      busy.current = false;
    });
  };
  const sendWords = async () => {
    const words = text.trim();
    if (!words) return;
    if (isRunning || isFlow || !mayResume) {
      const done = await change(
        'POST',
        sessionPath(session.id, '/say'),
        { text: words, now, ...(lane ? { lane } : {}) },
        { store },
        key.current(words),
      );
      key.current = keyOf();
      // The run ended before this message, so the message resumes it.
      if (!done.running && !isFlow && mayResume) {
        await resumeSession(store, session.id);
        toast({ text: 'Resumed with that.' });
      } else {
        toast({
          text: done.running
            ? 'Said. It is heard before the next call.'
            : 'Said. It is heard when the session is resumed.',
        });
      }
    } else {
      await resumeSession(store, session.id, { say: words });
      toast({ text: 'Resumed with that.' });
    }
    setText('');
    announceChange();
  };
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === 'Escape') /** @type {HTMLElement} */ (event.target).blur();
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      send().catch((problem) => toast({ problem }));
    }
  };
  return html`<form class="composer" onSubmit=${(/** @type {Event} */ event) => {
    event.preventDefault();
    send().catch((problem) => toast({ problem }));
  }}>
    <textarea id="say" rows="2" aria-label="Say something to the agent"
      placeholder=${isRunning ? 'Say something. It is heard before the next call.' : 'Say what to do next'}
      value=${text}
      onInput=${(/** @type {any} */ event) => setText(event.target.value)} onKeyDown=${onKey}></textarea>
    <div class="row wrap">
      ${isFlow && lanes.length > 1 && html`<select aria-label="To which agent" value=${lane}
        onChange=${(/** @type {any} */ event) => setLane(event.target.value)}><option value="">To whom?</option>
        ${lanes.map((it) => html`<option value=${it}>${it}</option>`)}</select>`}
      ${!isRunning && session.unheard > 0 && html`<span class="dim" role="status">
        ${session.unheard === 1 ? 'A message was' : `${count(session.unheard)} messages were`} not heard yet.</span>`}
      ${isRunning && html`<label class="switch"><input type="checkbox" checked=${now}
        onChange=${(/** @type {any} */ event) => setNow(event.target.checked)} /> End the current call for it</label>`}
      <span class="grow"></span>
      ${
        isRunning &&
        html`<${Act} class="bad" onPress=${async () => {
          await change('POST', sessionPath(session.id, '/stop'), {}, { store });
          toast({ text: 'It was asked to stop.' });
        }}>Stop<//>`
      }
      <span class="dim hint">Enter sends, Shift+Enter begins a line</span>
      <button class="primary" type="submit" disabled=${!text.trim()}>
        ${isRunning || isFlow || !mayResume ? 'Say' : 'Resume with this'}</button>
    </div>
  </form>`;
}
