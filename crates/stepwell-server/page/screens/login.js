// @ts-check
// Login: by the link that the server prints, or by a token.
import { html, useState } from '../html.js';
import { change, keepKey } from '../api.js';
import { Field, ProblemNote } from '../parts.js';

/** @param {string} code */
export async function logIn(code) {
  const { key } = await change('POST', '/login', { code });
  keepKey(key);
}

/** @param {{onDone: () => void, problem?: any}} props */
export function Login({ onDone, problem: first }) {
  const [code, setCode] = useState('');
  const [problem, setProblem] = useState(first ?? null);
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    // The whole link is accepted as well.
    const text = code.trim().split('#').pop() ?? '';
    try {
      await logIn(text);
      onDone();
    } catch (refused) {
      setProblem(refused);
    }
  };
  return html`<main class="login"><form class="card" onSubmit=${send}>
    <h1>Stepwell</h1>
    <p>Open the link that <code>stepwell serve</code> prints, or paste it here. A token does as well: <code>stepwell serve --print-token</code>.</p>
    <${Field} label="Link or token"><input type="password" autocomplete="current-password" required value=${code}
      onInput=${(/** @type {any} */ event) => setCode(event.target.value)} /><//>
    <${ProblemNote} problem=${problem} />
    <div class="row actions"><span class="grow"></span><button class="primary" type="submit">Log in</button></div>
  </form></main>`;
}
