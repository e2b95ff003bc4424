// What is typed where no field is: it changes nothing, and answers nothing.
import { open } from './browser.mjs';
import { ask, assert, at, isWell, press, storeKey, tabTo, until } from './expect.mjs';

const call = (tool, args) => ({ tool, arguments: args });

const SENTENCES = ['yes, always allow it', 'nay', 'you may run all of that, of course', 'Approve 1 2 3'];

/** Every character that a keyboard has. */
const CHARACTERS = Array.from({ length: 95 }, (_, n) => String.fromCharCode(32 + n));

export async function typing({ world, browser, claim }) {
  const home = await storeKey(world, 'greeter');
  const answers = (id) => world.json(['log', id]).filter((event) => event.kind === 'gate_answered');
  /** Asks the server for something, behind what the page may have asked for. */
  const settle = (page) => page.evaluate(() => fetch('/api/v1/healthz').then((answer) => answer.text()));

  await claim('a sentence typed at a question answers nothing, in the inbox and on its session', async () => {
    const id = ask(world, 'typed', [call('run_command', { command: 'echo typed > typed.txt' })]);
    const page = await open(browser, world);
    for (const address of [`${world.origin}/#/inbox`, at(world, home, id)]) {
      for (const [n, sentence] of SENTENCES.entries()) {
        await page.goto(address);
        const card = page.locator(`.gate-card[data-gate*="${id}"][data-still]`);
        await card.waitFor();
        await [() => card.locator('header').click(), () => card.focus(), () => page.keyboard.press('j')][n % 3]();
        await page.keyboard.type(sentence);
        await settle(page);
        assert.deepEqual(answers(id), [], `${sentence} at ${address}`);
      }
    }
    isWell(page);
  });

  await claim('a sentence typed at an answer denies, with the sentence as the reason', async () => {
    const id = ask(world, 'reasons', [call('run_command', { command: 'echo reasons > reasons.txt' })]);
    const page = await open(browser, world);
    await page.goto(at(world, home, id));
    await page.locator('.gate-card[data-still]').waitFor();
    await page.keyboard.press('j');
    await tabTo(page, 'an answer', () => document.activeElement?.textContent.trim() === 'Allow once');
    await page.keyboard.press('Space');
    await page.keyboard.type('yes but not now');
    await until(page, 'the reason', () => document.activeElement?.value === 'yes but not now');
    assert.deepEqual(answers(id), []);
    await page.keyboard.press('Enter');
    await page.getByText('denied: yes but not now').waitFor();
    assert.deepEqual(answers(id).map((event) => event.body.answer), [{ deny: { reason: 'yes but not now' } }]);
    isWell(page);
  });

  await claim('each answer that is remembered says what it is about, and Enter on it gives it', async () => {
    const id = ask(world, 'scope', [call('run_command', { command: 'echo scope > scope.txt' })]);
    const page = await open(browser, world);
    const card = page.locator(`.gate-card[data-gate*="${id}"][data-still]`);
    await card.waitFor();
    const labels = await card.locator('.actions button').allTextContents();
    assert.deepEqual(labels.map((it) => it.trim()), [
      'Allow once',
      'Always allow any call of run_command in this session',
      'Deny',
      'Never allow any call of run_command in this session',
    ]);
    await card.focus();
    await press(page, 'Always allow any call of run_command in this session');
    await card.waitFor({ state: 'detached' });
    assert.deepEqual(answers(id).map((event) => event.body.answer), [{ allow: { scope: 'always' } }]);
    isWell(page);
  });

  await claim('no character changes a stopped session: on its screens, in the list and in the inbox', async () => {
    const model = world.script('stray', [{ text: 'Too late.', delay_ms: 600_000, usage: { input: 9, output: 1 } }]);
    const run = world.start(['run', 'Stop before stray keys', '--mode', 'yolo', '--model', model]);
    const page = await open(browser, world);
    const row = page.locator('.session-row', { hasText: 'Stop before stray keys' });
    await row.waitFor();
    const id = await row.getAttribute('data-id');
    await world.api(`/sessions/${id}/stop`, { method: 'POST', body: '{}' });
    assert.equal(await run.over, 130, run.err);
    const before = world.json(['log', id]).length;
    const changes = [];
    page.on('request', (request) => {
      if (request.method() !== 'GET') changes.push(`${request.method()} ${new URL(request.url()).pathname}`);
    });
    const head = page.getByRole('heading', { level: 1, name: 'Stop before stray keys' });
    for (const [address, ready] of [
      [at(world, home, id), head],
      [at(world, home, id, '/time'), head],
      [`${world.origin}/#/sessions`, row],
      [`${world.origin}/#/inbox`, row],
    ]) {
      for (const key of CHARACTERS) {
        if (page.url() !== address || key === ' ') {
          await page.goto(address);
          await ready.waitFor();
        }
        if (ready === row) await row.focus();
        await page.keyboard.press(key === ' ' ? 'Space' : key);
        // Escape closes a dialog that is open, not one that is about to open.
        if (key === '?') await page.getByRole('dialog').waitFor();
        await page.keyboard.press('Escape');
        await page.getByRole('dialog').waitFor({ state: 'detached' });
        assert.deepEqual(changes, [], `${key} at ${address}`);
      }
    }
    await settle(page);
    assert.deepEqual(changes, []);
    assert.equal(world.json(['log', id]).length, before);
    isWell(page);
  });

  await claim('an answer does not undo a stop, and a stopped session was not cut off', async () => {
    const model = world.script('stop at question', [
      { text: 'May I?', usage: { input: 9, output: 1 }, calls: [call('run_command', { command: 'echo late > late.txt' })] },
      { text: 'Then not.', usage: { input: 9, output: 1 } },
    ]);
    const run = world.start(['run', 'Stop at a question', '--wait', '--model', model]);
    const page = await open(browser, world);
    const card = page.locator('.gate-card', { hasText: 'echo late' });
    await card.waitFor();
    const id = world.newest();
    await world.api(`/sessions/${id}/stop`, { method: 'POST', body: '{}' });
    assert.equal(await run.over, 130, run.err);
    const row = page.locator('.session-row', { hasText: 'Stop at a question' });
    const section = page.locator('section', { has: page.getByRole('heading', { name: /Stopped by a person/ }) });
    await section.locator(row).waitFor();
    await section.locator('.status').getByText('stopped').first().waitFor();
    const cutOff = page.locator('section', { has: page.getByRole('heading', { name: /Was cut off/ }) });
    assert.equal(await cutOff.locator(row).count(), 0);
    await card.getByText('A person stopped this session.').waitFor();
    const asked = [];
    page.on('request', (request) => {
      if (request.method() === 'POST') asked.push(new URL(request.url()).pathname.split('/').pop());
    });
    await card.getByRole('button', { name: 'Deny' }).click();
    await card.getByLabel('Reason, for the model').fill('not now');
    await page.keyboard.press('Enter');
    await page.getByText('Answered. The session stays stopped.').waitFor();
    await card.waitFor({ state: 'detached' });
    await settle(page);
    assert.ok(!asked.includes('resume'), `the page asked for ${asked}`);
    const { status, stopped } = await world.api(`/sessions/${id}`);
    assert.deepEqual([status, stopped], ['interrupted', true]);
    // It is offered for a moment only: what takes long is asked afterwards.
    await page.locator('.toast').getByRole('button', { name: 'Resume' }).click();
    await page.goto(at(world, home, id));
    await page.getByText('Then not.').waitFor();
    assert.equal(answers(id).length, 1);
    isWell(page);
  });
}
