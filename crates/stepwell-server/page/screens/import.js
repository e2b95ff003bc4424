// @ts-check
// Importing: what the other agents of this machine keep, counted first, then read in.
import { html, useState } from '../html.js';
import { change } from '../api.js';
import { Act, Dialog, Loading, ProblemNote } from '../parts.js';
import { announceChange, useLoad } from '../state.js';
import { count, plain, plural } from '../text.js';

/** How many problems are listed. */
const PROBLEMS = 20;

/** @param {{store: string, onClose: () => void}} props */
export function ImportDialog({ store, onClose }) {
  const found = useLoad(() => change('POST', '/import', { dry_run: true }, { store }), [store]);
  const [done, setDone] = useState(/** @type {any} */ (null));
  const report = done ?? found.data;
  const fresh = report ? report.imported + report.updated : 0;
  const run = async () => {
    setDone(await change('POST', '/import', {}, { store }));
    announceChange();
  };
  return html`<${Dialog} title="Import sessions of other agents" onClose=${onClose}>
    <${ProblemNote} problem=${found.problem} retry=${found.reload} />
    ${!report && found.loading && html`<${Loading} what="Looking at what other agents keep on this machine" />`}
    ${report && html`<${Report} report=${report} />`}
    <div class="row actions"><span class="grow"></span><button type="button" onClick=${onClose}>${done ? 'Close' : 'Cancel'}</button>
      ${report && !done && html`<${Act} class="primary" disabled=${fresh === 0} onPress=${run}>Import ${plural(count(fresh), 'session')}<//>`}</div>
    <//>`;
}

/** What an import did, or would do. @param {{report: any}} props */
function Report({ report }) {
  const { agents, problems } = report;
  const all = [
    `${count(report.imported)} ${report.dry_run ? 'to import' : 'imported'}`,
    `${count(report.updated)} ${report.dry_run ? 'to update' : 'updated'}`,
    `${count(report.unchanged)} unchanged`,
    report.damaged > 0 && `${count(report.damaged)} damaged`,
    report.skipped > 0 && `${count(report.skipped)} skipped`,
  ].filter(Boolean);
  return html`
    ${agents.length === 0 && html`<p>No other agent keeps sessions on this machine.</p>`}
    <ul class="plain-list">${agents.map(
      (/** @type {any} */ it) => html`<li key=${it.folder}>
      <strong>${it.agent}</strong> ${plural(count(it.files), 'file')} in <code>${plain(it.folder)}</code></li>`,
    )}</ul>
    <p role="status"><strong>${all.join(', ')}</strong></p>
    ${
      problems.length > 0 &&
      html`<details><summary>${plural(count(problems.length), 'problem')}</summary>
      <ul>${problems.slice(0, PROBLEMS).map((/** @type {string} */ it) => html`<li key=${it}>${plain(it)}</li>`)}</ul></details>`
    }`;
}
