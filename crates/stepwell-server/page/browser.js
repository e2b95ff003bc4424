// @ts-check
// What is set in this browser alone: its colours, and who is logged in.
import { html } from './html.js';
import { change } from './api.js';
import { update, useApp } from './state.js';
import { nextTheme } from './theme.js';

async function logOut() {
  await change('POST', '/logout').catch(() => undefined);
  update({ login: true });
}

export function ThisBrowser() {
  const app = useApp();
  return html`
    <button class="plain-button" onClick=${nextTheme}>Colours: ${app.theme}</button>
    <button class="plain-button" onClick=${logOut}>Log out</button>`;
}
