// @ts-check
// What is set in this browser alone: its colours, and who is logged in.
import { html, useState } from './html.js';
import { change, keepKey } from './api.js';
import { Dialog, toast } from './parts.js';
import { useApp } from './state.js';
import { nextTheme } from './theme.js';

/** Shows the logout only after it succeeded; everything on the screen goes with it. */
async function logOut() {
  try {
    await change('POST', '/logout');
    keepKey('');
  } catch (problem) {
    toast({ problem });
    return;
  }
  window.location.replace('/');
}

export function ThisBrowser() {
  const app = useApp();
  return html`
    <button class="plain-button" onClick=${nextTheme}>Colours: ${app.theme}</button>
    <button class="plain-button" onClick=${logOut}>Log out</button>`;
}

/** The same on a narrow screen, where the list of screens has no room for it. */
export function BrowserMenu() {
  const [isOpen, open] = useState(false);
  return html`<button class="plain-button narrow-only" aria-haspopup="dialog" onClick=${() => open(true)}>Menu</button>
    ${isOpen && html`<${Dialog} title="This browser" onClose=${() => open(false)}><div class="row wrap actions">
      <${ThisBrowser} /></div><//>`}`;
}
