// One browser with many tabs, and other servers on the same machine.
import { createServer } from 'node:http';
import { readFileSync } from 'node:fs';
import { open, tab } from './browser.mjs';
import { assert, at, isWell, storeKey } from './expect.mjs';

/** More than the six connections that a browser opens to one server. */
const TABS = 20;

const call = (tool, args) => ({ tool, arguments: args });

export async function tabs({ world, browser, claim }) {
  const home = await storeKey(world, 'greeter');
  const label = (id, name) => world.api(`/sessions/${id}`, { method: 'PATCH', body: JSON.stringify({ label: name }) });
  const isNamed = (page, name) => page.getByRole('heading', { level: 1, name, exact: true }).waitFor();

  await claim(`${TABS} tabs on different sessions are all live, and the last one answers a question`, async () => {
    const model = world.script('tabs', [
      { text: 'May I?', usage: { input: 9, output: 1 }, calls: [call('run_command', { command: 'echo tabs > tabs.txt' })] },
      { text: 'Thanks.', usage: { input: 9, output: 1 } },
    ]);
    const run = world.start(['run', 'Ask in the last tab', '--wait', '--model', model]);
    const first = await open(browser, world);
    await first.locator('.gate-card', { hasText: 'echo tabs' }).waitFor();
    const asking = world.newest();
    const forks = await Promise.all(
      Array.from({ length: TABS - 1 }, () => world.api(`/sessions/${world.waste}/fork`, { method: 'POST', body: '{}' })),
    );
    const ids = [...forks.map((fork) => fork.id), asking];
    const pages = [first];
    while (pages.length < TABS) pages.push(await tab(first.context()));
    for (const [n, page] of pages.entries()) {
      await page.goto(at(world, home, ids[n]));
      await page.getByRole('list', { name: 'Conversation' }).waitFor();
    }
    // What changes comes to each of them.
    await Promise.all(ids.map((id, n) => label(id, `tab ${n}`)));
    await Promise.all(pages.map((page, n) => isNamed(page, `tab ${n}`)));
    // The first one was there first: the others do without it.
    await first.close();
    await Promise.all(ids.map((id, n) => label(id, `still tab ${n}`)));
    await Promise.all(pages.slice(1).map((page, n) => isNamed(page, `still tab ${n + 1}`)));
    const last = pages[TABS - 1];
    await last.getByRole('button', { name: 'Allow once' }).click();
    await last.locator('.status.success').first().waitFor();
    assert.equal(await run.over, 0, run.err);
    assert.equal(world.read('tabs.txt'), 'tabs\n');
    for (const page of pages.slice(1)) isWell(page);
  });

  await claim('a server on another port sees the cookie of the login, and cannot use it', async () => {
    const seen = [];
    const other = createServer((request, response) => {
      seen.push(request.headers.cookie);
      response.end('another page');
    });
    await new Promise((resolve) => other.listen(0, '127.0.0.1', resolve));
    const page = await open(browser, world);
    const elsewhere = await tab(page.context());
    await elsewhere.goto(`http://127.0.0.1:${other.address().port}/`);
    other.close();
    const cookie = seen.find((it) => it?.includes('stepwell_'));
    assert.ok(cookie, 'a browser sends cookies to every port');
    const ask = (headers) =>
      fetch(`${world.origin}/api/v1/sessions`, { headers: { cookie, ...headers } }).then((answer) => answer.status);
    assert.equal(await ask({}), 401);
    assert.equal(await ask({ 'Sec-Fetch-Site': 'same-origin' }), 401);
    await page.goto(`${world.origin}/#/sessions`);
    await page.locator('.session-row').first().waitFor();
    isWell(page);
  });

  await claim('a session is saved as a file', async () => {
    const page = await open(browser, world);
    await page.goto(at(world, home, world.greet));
    await page.getByRole('button', { name: 'More…' }).click();
    const saved = page.waitForEvent('download');
    await page.getByRole('dialog').getByText('markdown').click();
    const file = await saved;
    assert.match(file.suggestedFilename(), /\.md$/);
    assert.match(readFileSync(await file.path(), 'utf8'), /The script comes first\./);
    isWell(page);
  });

  await claim('who logs out in one tab is out in all of them', async () => {
    const page = await open(browser, world);
    const other = await tab(page.context());
    await other.goto(at(world, home, world.greet));
    await other.getByText('The script comes first.').waitFor();
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByLabel('Link or token').waitFor();
    await other.getByLabel('Link or token').waitFor();
    await other.waitForURL(`${world.origin}/`);
    const left = await other.evaluate(() => document.body.textContent);
    assert.ok(!left.includes('The script comes first.'), 'nothing of what was shown is left');
    const kept = await page.evaluate(() => JSON.stringify(globalThis.localStorage));
    assert.ok(!/[\w-]{43}/.test(kept), `nothing of the login is left: ${kept}`);
  });
}
