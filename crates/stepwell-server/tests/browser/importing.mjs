// Importing what other agents keep on this machine: counted first, then read in.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { open } from './browser.mjs';
import { assert } from './expect.mjs';

/** Has Codex keep a session in the home folder. */
function keepSession(world) {
  const id = '0196a6b0-6e20-7c3b-9d51-3f1c0a5b7e21';
  const folder = join(world.home, '.codex/sessions/2026/05/04');
  mkdirSync(folder, { recursive: true });
  const timestamp = '2026-05-04T07:15:00.000Z';
  const meta = { id, timestamp, cwd: '/w', originator: 'codex_cli_rs', cli_version: '0.130.0', source: 'cli' };
  const said = (role, type, text) => ({ type: 'message', role, content: [{ type, text }] });
  const lines = [
    { timestamp, type: 'session_meta', payload: meta },
    { timestamp, type: 'response_item', payload: said('user', 'input_text', 'Mend the oven door') },
    { timestamp, type: 'response_item', payload: said('assistant', 'output_text', 'It is mended.') },
  ];
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
  writeFileSync(join(folder, `rollout-2026-05-04T07-15-00-${id}.jsonl`), text);
}

export async function importing({ world, browser, claim }) {
  await claim('the page counts what other agents keep, and imports it on a click', async () => {
    keepSession(world);
    const page = await open(browser, world);
    await page.goto(`${world.origin}/#/sessions`);
    await page.getByText('Make greet.sh greet by name').first().waitFor();
    assert.equal(await page.getByText('Mend the oven door').count(), 0);
    await page.getByRole('button', { name: 'Import…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Import sessions of other agents' });
    await dialog.getByText('1 to import, 0 to update, 0 unchanged').waitFor();
    assert.equal(await page.getByText('Mend the oven door').count(), 0, 'nothing is imported before the click');
    await dialog.getByRole('button', { name: 'Import 1 session' }).click();
    await dialog.getByText('1 imported, 0 updated, 0 unchanged').waitFor();
    await dialog.locator('.actions').getByRole('button', { name: 'Close' }).click();
    await page.getByText('Mend the oven door').first().waitFor();
    // Nothing is imported twice.
    await page.getByRole('button', { name: 'Import…' }).click();
    await dialog.getByText('0 to import, 0 to update, 1 unchanged').waitFor();
    assert.ok(await dialog.getByRole('button', { name: 'Import 0 sessions' }).isDisabled());
  });
}
