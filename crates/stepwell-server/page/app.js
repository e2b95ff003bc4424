// @ts-check
// The page: who is logged in, which screen is shown, and what is always there.
import { html, render, useEffect, useState } from './html.js';
import { onLoggedOut } from './api.js';
import { BrowserMenu, ThisBrowser } from './browser.js';
import { Icon } from './icons.js';
import { KeyHelp, useKeys } from './keys.js';
import { watchChanges } from './live.js';
import { notify } from './notify.js';
import { Loading, ProblemNote, Toasts } from './parts.js';
import { go, useRoute } from './route.js';
import { Search } from './search.js';
import { announceChange, homeStore, loadGates, loadServer, onChange, state, update, useApp } from './state.js';
import { wearTheme } from './theme.js';
import { Inbox } from './screens/inbox.js';
import { Login, logIn } from './screens/login.js';
import { Sessions } from './screens/sessions.js';

/** Screens that are loaded at once, and screens that are loaded when first shown. */
const SCREENS = /** @type {Record<string, any>} */ ({ inbox: Inbox, sessions: Sessions, trash: Sessions });
const LATER = /** @type {Record<string, () => Promise<any>>} */ ({
  session: () => import('./screens/session.js').then((it) => it.Session),
  time: () => import('./screens/time.js').then((it) => it.TimeTravel),
  compare: () => import('./screens/compare.js').then((it) => it.Compare),
  cost: () => import('./screens/cost.js').then((it) => it.Cost),
  health: () => import('./screens/health.js').then((it) => it.Health),
  start: () => import('./screens/start.js').then((it) => it.Start),
});

/** @param {{route: import('./route.js').Route}} props */
function Screen({ route }) {
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const [, draw] = useState(0);
  const { name } = route;
  useEffect(() => {
    if (SCREENS[name]) return;
    LATER[name]().then(
      (screen) => {
        SCREENS[name] = screen;
        draw((n) => n + 1);
      },
      () => setProblem(new Error('The screen could not be loaded.')),
    );
  }, [name]);
  const Shown = SCREENS[name];
  if (Shown) return html`<${Shown} route=${route} />`;
  return problem
    ? html`<${ProblemNote} problem=${problem} retry=${() => window.location.reload()} />`
    : html`<${Loading} />`;
}

const PLACES = [
  ['inbox', 'Inbox'],
  ['sessions', 'Sessions'],
  ['start', 'Start'],
  ['cost', 'Cost'],
  ['health', 'Health'],
];
/** The interval of checks for new stores. */
const LOOK_AGAIN = 15_000;

/** Follows changes. @param {boolean} isOnSession a session's screen follows its own session */
function useChanges(isOnSession) {
  const home = homeStore()?.key;
  const several = state.stores.length > 1;
  useEffect(() => {
    if (!home) return undefined;
    const look = () =>
      loadGates().then(
        () => notify(state.gates),
        () => undefined,
      );
    look();
    const told = isOnSession ? look : announceChange;
    /** @type {(() => unknown)[]} */ const over = [onChange(look), watchChanges(told, (online) => update({ online }))];
    if (several) {
      const timer = setInterval(told, LOOK_AGAIN);
      over.push(() => clearInterval(timer));
    }
    return () => over.forEach((end) => end());
  }, [home, several, isOnSession]);
}

function Shell() {
  const app = useApp();
  const route = useRoute();
  const [help, setHelp] = useState(false);
  useChanges(route.name === 'session');
  useKeys(
    {
      '?': () => setHelp(true),
      'g i': () => go('#/inbox'),
      'g s': () => go('#/sessions'),
      'g n': () => go('#/start'),
      'g c': () => go('#/cost'),
      'g h': () => go('#/health'),
      'g t': () => go('#/trash'),
      'Ctrl+z': () => /** @type {HTMLElement | undefined} */ ([...document.querySelectorAll('[data-undo]')].pop())?.click(),
    },
    [],
  );
  const where = `${route.name} ${route.id ?? ''}`;
  useEffect(() => {
    window.scrollTo({ top: 0 });
  }, [where]);
  const isHere = (/** @type {string} */ name) =>
    route.name === name || (name === 'sessions' && ['session', 'time', 'compare', 'trash'].includes(route.name));
  return html`
    <a class="skip" href="#main" onClick=${(/** @type {Event} */ event) => {
      event.preventDefault();
      document.getElementById('main')?.focus();
    }}>Skip to the content</a>
    ${
      route.name === 'session' &&
      html`<a class="skip" href="#say" onClick=${(/** @type {Event} */ event) => {
        event.preventDefault();
        document.getElementById('say')?.focus();
      }}>Write a message</a>`
    }
    <div class="shell">
      <nav class="places" aria-label="Screens">
        <a class="brand" href="#/inbox"><img src="/icon.svg" alt="" width="22" height="22" /> <span>Stepwell</span></a>
        ${PLACES.map(
          ([
            name,
            label,
          ]) => html`<a key=${name} class="place" href=${`#/${name}`} aria-current=${isHere(name) ? 'page' : undefined}>
          <${Icon} name=${name} /><span>${label}</span>${name === 'inbox' && app.gates.length > 0 && html`<span
            class="count" aria-label=${`${app.gates.length} wait`}>${app.gates.length}</span>`}</a>`,
        )}
        <span class="grow"></span>
        <div class="foot">
          <button class="plain-button" onClick=${() => setHelp(true)}>Keys <kbd>?</kbd></button>
          <${ThisBrowser} />
        </div>
      </nav>
      <div class="content">
        <div class="top"><${Search} /><${BrowserMenu} />${!app.online && html`<span class="badge ask"
          role="status">The server is away; trying again…</span>`}</div>
        <main id="main" tabindex="-1"><${Screen} key=${where} route=${route} /></main>
      </div>
    </div>
    ${help && html`<${KeyHelp} onClose=${() => setHelp(false)} />`}
    <${Toasts} />
    ${app.login && html`<div class="over"><${Login} onDone=${() => loadServer().then(announceChange)} /></div>`}`;
}

/** Logs in if the URL is a login link, then shows the page. */
async function begin() {
  let problem = null;
  const code = window.location.pathname === '/login' ? window.location.hash.slice(1) : '';
  // The code must not stay in the history.
  if (window.location.pathname !== '/') window.history.replaceState(null, '', '/#/inbox');
  if (code)
    await logIn(code).catch((refused) => {
      problem = refused;
    });
  try {
    await loadServer();
    problem = null;
  } catch (refused) {
    if (/** @type {any} */ (refused).status !== 401) problem = refused;
    return { ready: false, problem };
  }
  return { ready: true, problem };
}

function App() {
  const [stage, set] = useState(/** @type {any} */ (null));
  useEffect(() => {
    wearTheme();
    begin().then(set);
    return onLoggedOut(() => update({ login: true }));
  }, []);
  if (!stage) return html`<p class="boot">Stepwell is loading…</p>`;
  if (stage.ready) return html`<${Shell} />`;
  if (stage.problem?.kind === 'offline')
    return html`<main class="login"><${ProblemNote} problem=${stage.problem} retry=${() => begin().then(set)} />
      </main>`;
  return html`<${Login} problem=${stage.problem} onDone=${() => begin().then(set)} />`;
}

const root = /** @type {HTMLElement} */ (document.getElementById('app'));
root.replaceChildren();
render(html`<${App} />`, root);
