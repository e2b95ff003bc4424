// The page with other processes: servers that die, runs that wait, two people at once.
import { open } from './browser.mjs';
import { assert, isWell, until } from './expect.mjs';

const call = (tool, args) => ({ tool, arguments: args });

export async function together({ world, browser, claim, shot }) {
  await claim('a question is answered on the page while run --wait waits in another process', async () => {
    const model = world.script('waits', [
      {
        text: 'May I?',
        usage: { input: 100, output: 10 },
        calls: [call('run_command', { command: 'echo asked > asked.txt' })],
      },
      { text: 'Thanks.', usage: { input: 100, output: 10 } },
    ]);
    const run = world.start(['run', 'Ask before you echo', '--wait', '--model', model]);
    const page = await open(browser, world);
    const card = page.locator('.gate-card', { hasText: 'echo asked > asked.txt' });
    await card.getByRole('button', { name: 'Allow once' }).click();
    await card.waitFor({ state: 'detached' });
    assert.equal(await run.over, 0, run.err);
    assert.equal(world.read('asked.txt'), 'asked\n');
    isWell(page);
  });

  await claim('of two browsers that answer at once, one is told who was first', async () => {
    const model = world.script('twice', [
      { text: 'May I?', usage: { input: 100, output: 10 }, calls: [call('run_command', { command: 'echo twice' })] },
      { text: 'Thanks.', usage: { input: 100, output: 10 } },
    ]);
    const run = world.start(['run', 'Ask two people', '--wait', '--model', model]);
    const pages = await Promise.all([open(browser, world), open(browser, world)]);
    const cards = pages.map((page) => page.locator('.gate-card', { hasText: 'echo twice' }));
    await Promise.all(cards.map((card) => card.waitFor()));
    // Neither answer leaves before both are on their way.
    let both;
    const bothAsked = new Promise((resolve) => {
      both = resolve;
    });
    let asked = 0;
    for (const page of pages) {
      await page.route('**/gates/*', async (route) => {
        asked += 1;
        if (asked === 2) both();
        await bothAsked;
        await route.continue();
      });
    }
    const answers = pages.map((page) =>
      page.waitForResponse((response) => /\/gates\//.test(response.url()) && response.request().method() === 'POST'),
    );
    await Promise.all(cards.map((card) => card.getByRole('button', { name: 'Allow once' }).click()));
    const statuses = (await Promise.all(answers)).map((answer) => answer.status()).sort();
    assert.deepEqual(statuses, [200, 409]);
    await Promise.any(pages.map((page) => page.locator('.toast.bad').getByText(/web: /).waitFor()));
    assert.equal(await run.over, 0, run.err);
  });

  await claim('a server that is killed and comes back leaves no gap and no repeat on a following page', async () => {
    const model = world.script(
      'long',
      Array.from({ length: 50 }, (_, n) => ({
        text: `Line ${n + 1} of the report.`,
        delay_ms: 150,
        usage: { input: 100, output: 10 },
        calls: [call('list_files', { path: '.' })],
      })).concat([{ text: 'The report is whole.', usage: { input: 10, output: 5 } }]),
    );
    const page = await open(browser, world);
    const run = world.start(['run', 'Write a long report', '--mode', 'yolo', '--model', model]);
    await page.locator('.session-row', { hasText: 'Write a long report' }).locator('a').click();
    await page.getByText('Line 3 of the report.').waitFor();
    await page.getByRole('button', { name: 'Stop', exact: true }).first().waitFor();
    await shot(page, 'live');
    await world.kill();
    await page.getByText('The server is away').waitFor();
    // The run goes on without the server.
    const id = /#\/s\/[^/]+\/([^/?]+)/.exec(page.url())[1];
    while (!world.run(['log', id, '--kind', 'message']).includes('Line 10 of'))
      assert.ok(run.child.exitCode === null || run.child.exitCode === 0, run.err);
    await world.serve();
    await page.getByText('The report is whole.').waitFor();
    assert.equal(await run.over, 0, run.err);
    const log = world.json(['log', id]);
    await until(
      page,
      'the last event',
      (last) => Number(document.querySelector('ol.items')?.dataset.last) === last,
      log[log.length - 1].seq,
    );
    const shown = await page
      .locator('.item.message.assistant')
      .evaluateAll((items) => items.map((item) => Number(item.id.slice(1))));
    const said = log
      .filter((event) => event.kind === 'message' && event.body.role === 'assistant')
      .map((event) => event.seq);
    assert.deepEqual(shown, said);
    assert.equal(await page.getByLabel('Link or token').count(), 0, 'it stays logged in');
    isWell(page);
  });

  await claim('an answer is shown while the model gives it, and once when it is whole', async () => {
    const speaker = await world.speaker('The **first** half', ' and the other half.');
    const page = await open(browser, world);
    const run = world.start(['run', 'Speak slowly', '--model', speaker.model]);
    await page.locator('.session-row', { hasText: 'Speak slowly' }).locator('a').click();
    const speaking = page.locator('.item.speaking');
    await speaking.getByText('The first half').waitFor();
    assert.equal(await speaking.locator('strong').innerText(), 'first');
    assert.equal(await page.locator('.item.assistant').count(), 0, 'nothing is on record yet');
    speaker.goOn();
    await page.locator('.item.assistant').getByText('The first half and the other half.').waitFor();
    assert.equal(await run.over, 0, run.err);
    assert.equal(await speaking.count(), 0);
    assert.equal(await page.getByText('The first half').count(), 1);
    speaker.close();
    isWell(page);
  });

  await claim('a run is stopped from the page', async () => {
    const model = world.script(
      'endless',
      Array.from({ length: 200 }, (_, n) => ({
        text: `Turn ${n + 1}.`,
        delay_ms: 200,
        usage: { input: 10, output: 5 },
        calls: [call('list_files', { path: '.' })],
      })),
    );
    const page = await open(browser, world);
    const run = world.start(['run', 'Turn for ever', '--mode', 'yolo', '--model', model]);
    await page.locator('.session-row', { hasText: 'Turn for ever' }).locator('a').click();
    await page.getByText('Turn 2.').waitFor();
    await page.getByLabel('Say something to the agent').fill('A word in between');
    await page.getByRole('button', { name: 'Say', exact: true }).click();
    await page.locator('.item.message.user').getByText('A word in between').waitFor();
    await page.getByRole('button', { name: 'Stop', exact: true }).first().click();
    assert.equal(await run.over, 130, run.err);
    await page.locator('.status.interrupted').first().waitFor();
    isWell(page);
  });

  for (const [how, stop] of [
    ['on the page', (page) => page.getByRole('button', { name: 'Stop', exact: true }).first().click()],
    ['by stepwell stop', (_, id) => world.run(['stop', id])],
  ]) {
    await claim(`a session that is stopped ${how} stays stopped, though it has not heard the last words`, async () => {
      const says = (answer) => world.script(`stays ${how}`, [{ ...answer, usage: { input: 10, output: 5 } }]);
      const model = says({ text: 'Too late.', delay_ms: 600_000 });
      const page = await open(browser, world);
      const asked = [];
      page.on('request', (request) => {
        if (request.method() === 'POST') asked.push(new URL(request.url()).pathname.split('/').pop());
      });
      const task = `Think for long, then stop ${how}`;
      const run = world.start(['run', task, '--mode', 'yolo', '--model', model]);
      await page.locator('.session-row', { hasText: task }).locator('a').click();
      await page.locator('.status.running').first().waitFor();
      await page.getByLabel('Say something to the agent').fill('One more thing');
      await page.getByRole('button', { name: 'Say', exact: true }).click();
      await page.getByText('Said. It is heard before the next call.').waitFor();
      const id = /#\/s\/[^/]+\/([^/?]+)/.exec(page.url())[1];
      await stop(page, id);
      assert.equal(await run.over, 130, run.err);
      await page.locator('.status.interrupted').first().waitFor();
      // The page does what it does by itself: it draws, and asks for the session again.
      for (let n = 0; n < 3; n += 1) {
        const again = page.waitForResponse((answer) => new URL(answer.url()).pathname.endsWith(`/sessions/${id}`));
        await world.api(`/sessions/${id}`, { method: 'PATCH', body: JSON.stringify({ tags: [`seen-${n}`] }) });
        await again;
        await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 0))));
      }
      // Nor does to open it again.
      for (let n = 0; n < 3; n += 1) {
        await page.reload();
        await page.locator('.status.interrupted').first().waitFor();
        await page.getByText('A message was not heard yet.').waitFor();
      }
      assert.ok(!asked.includes('resume'), `the page asked for ${asked}`);
      const { status, unheard } = await world.api(`/sessions/${id}`);
      assert.deepEqual([status, unheard], ['interrupted', 1]);
      // A person who says something new has it go on, with all of the words.
      says({ text: 'I heard you.' });
      await page.getByLabel('Say something to the agent').fill('Go on now');
      await page.getByRole('button', { name: 'Resume with this' }).click();
      await page.getByText('I heard you.').waitFor();
      await page.locator('.item.message.user').getByText('One more thing').waitFor();
      isWell(page);
    });
  }

  await claim('a new question is notified of when that was switched on', async () => {
    const page = await open(browser, world, { permissions: ['notifications'] });
    await page.evaluate(() => {
      globalThis.told = [];
      document.hasFocus = () => false;
      globalThis.Notification = class {
        static permission = 'granted';
        static async requestPermission() {
          return 'granted';
        }
        constructor(title) {
          globalThis.told.push(title);
        }
      };
    });
    await page.getByLabel('Notify me').check();
    // Whoever switches it on sees that it works.
    await until(page, 'the first one', () => globalThis.told.splice(0).length === 1);
    // What waited before is not new.
    await page.locator('.gate-card').first().waitFor();
    const model = world.script('notify', [
      { text: 'May I?', usage: { input: 100, output: 10 }, calls: [call('run_command', { command: 'echo notified' })] },
      { text: 'Thanks.' },
    ]);
    world.run(['run', 'Ask to be noticed', '--model', model], { ok: [8] });
    await until(page, 'a notification', () => globalThis.told.length === 1);
    assert.match(await page.evaluate(() => globalThis.told[0]), /run_command/);
    const id = world.newest();
    await world.api(
      `/sessions/${id}/gates/${(await world.api('/gates')).items.find((gate) => gate.session_id === id).id}`,
      { method: 'POST', body: JSON.stringify({ choice: 'deny' }) },
    );
  });
}
