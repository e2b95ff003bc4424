// A day of work: once with the mouse, once with the keyboard alone.
import { open } from './browser.mjs';
import { assert, at, isWell, press, storeKey, tabTo, toComposer, until } from './expect.mjs';

const call = (tool, args) => ({ tool, arguments: args });

/** What the agent of the day does. */
function script(world, name, file) {
  world.useScript(name, [
    {
      text: 'I write it.',
      usage: { input: 900, output: 40 },
      calls: [call('write_file', { path: file, content: 'one\ntwo\n' })],
    },
    {
      text: 'And a line more.',
      usage: { input: 950, output: 40 },
      calls: [call('edit_file', { path: file, old_text: 'two', new_text: 'two\nthree' })],
    },
    { text: 'There it is.', usage: { input: 1000, output: 15 } },
    { text: 'With pleasure, again.', usage: { input: 1100, output: 15 } },
    { text: 'Once more.', usage: { input: 1200, output: 15 } },
  ]);
}

const idOf = (page) => decodeURIComponent(/#\/s\/[^/]+\/([^/?]+)/.exec(page.url())[1]);

export async function byMouse({ world, browser, claim, shot }) {
  const home = await storeKey(world, 'greeter');
  const button = (page, name) => page.getByRole('button', { name, exact: true });

  await claim('by mouse: a task is started, approved, spoken to, renamed, and found', async () => {
    script(world, 'mouse', 'mouse.txt');
    const page = await open(browser, world);
    await page.getByRole('link', { name: 'Start', exact: true }).click();
    await page.getByLabel('Task').fill('Write mouse.txt with two lines');
    await page.getByLabel('Agent').selectOption('build');
    await page.getByLabel('Budget in dollars').fill('2');
    await button(page, 'Start').click();
    // The question comes with the diff in full; the first answer is once, the second for good.
    await page.locator('.gate-card .add').getByText('two').waitFor();
    await button(page, 'Allow once').click();
    await page.locator('.gate-card .add').getByText('three').waitFor();
    await button(page, 'Always allow any call of edit_file in this session').click();
    await page.getByText('There it is.').waitFor();
    await page.locator('.status.success').first().waitFor();
    assert.equal(world.read('mouse.txt'), 'one\ntwo\nthree\n');
    await page.locator('.call', { hasText: 'edit_file' }).locator('summary').first().click();
    await page.locator('.call .diff .add').getByText('three').first().waitFor();
    await page.getByLabel('Say something to the agent').fill('Please say it again');
    await button(page, 'Resume with this').click();
    await page.getByText('With pleasure, again.').waitFor();
    await button(page, 'Rename').click();
    await page.getByLabel('Name', { exact: true }).fill('mouse work');
    await page.getByLabel('Tags', { exact: true }).fill('day, mouse');
    await button(page, 'Save').click();
    await page.getByRole('heading', { name: 'mouse work' }).waitFor();
    await page.getByLabel('Search all sessions').fill('pleasure aga');
    await page.getByRole('option').filter({ hasText: 'With pleasure' }).first().click();
    await page.locator('.item.target').getByText('With pleasure, again.').waitFor();
    // The other project is searched as well.
    await page.getByLabel('Search all sessions').fill('tidied note');
    await page.getByRole('option').filter({ hasText: 'I tidied the notes' }).first().click();
    await page.getByRole('heading', { name: 'Tidy the notes' }).waitFor();
    isWell(page);
  });

  await claim('by mouse: time travel shows a point, forks there, rewinds after a dry run, and undoes it', async () => {
    const [{ id }] = world.json(['ls', '--label', 'mouse work']).length
      ? world.json(['ls', '--label', 'mouse work'])
      : [{ id: world.newest() }];
    const first = world.json(['log', id]).filter((event) => event.kind === 'step')[0].seq;
    const page = await open(browser, world);
    await page.goto(at(world, home, id));
    await page.getByRole('link', { name: 'Time travel' }).click();
    await page.getByLabel('Event', { exact: true }).fill(String(first));
    await until(
      page,
      'what the model was shown',
      () => document.querySelectorAll('ol[aria-label=Messages] > li').length === 3,
    );
    await page.getByRole('link', { name: 'Files then' }).click();
    await page.locator('pre.plain').getByText('one').waitFor();
    await page.locator('.diff .add').getByText('three').waitFor();
    await button(page, 'Fork here').click();
    await page.getByRole('dialog').getByLabel('Name', { exact: true }).fill('mouse fork');
    // Whoever presses twice gets one.
    await button(page, 'Fork').dblclick();
    await page.getByRole('heading', { name: 'mouse fork' }).waitFor();
    assert.equal(await page.locator('.toast.bad').count(), 0);
    const fork = idOf(page);
    await page.getByRole('link', { name: 'Compare' }).click();
    await page.getByText('They part behind event').waitFor();
    await page.locator('.diff').getByText('three').first().waitFor();
    await page.goto(at(world, home, id, `/time?at=${first}`));
    await button(page, 'Rewind to here').click();
    await page.locator('.dry-run').getByText('mouse.txt').waitFor();
    assert.equal(world.read('mouse.txt'), 'one\ntwo\nthree\n', 'a dry run changes nothing');
    await shot(page, 'rewind');
    await button(page, 'Rewind').click();
    await page.getByText(`Rewound to ${first}.`).waitFor();
    assert.equal(world.read('mouse.txt'), 'one\ntwo\n');
    await button(page, 'Undo').click();
    await page.getByText('The rewind is taken back.').waitFor();
    assert.equal(world.read('mouse.txt'), 'one\ntwo\nthree\n');
    assert.notEqual(fork, id);
    isWell(page);
  });

  await claim('by mouse: a flow is started from its form, and answered', async () => {
    world.useScript('flow-mouse', [
      { text: 'It is small.', usage: { input: 300, output: 50 } },
      { text: 'Announcing Teapot.', usage: { input: 400, output: 60 } },
      { text: 'Teapot is here, today.', usage: { input: 500, output: 40 } },
    ]);
    const page = await open(browser, world);
    await page.goto(`${world.origin}/#/start`);
    await button(page, 'A flow').click();
    await page.getByLabel('product').fill('Teapot');
    await page.getByLabel('tone').selectOption('festive');
    await button(page, 'Start').click();
    await page.getByLabel('Your answer').fill('name the day');
    await button(page, 'Answer').click();
    await page.locator('.node.done').nth(3).waitFor();
    await page.locator('.status.success').first().waitFor();
    isWell(page);
  });

  await claim('by mouse: a session is pinned, filtered, put into the trash and taken out again', async () => {
    const page = await open(browser, world);
    await page.getByRole('link', { name: 'Sessions', exact: true }).click();
    const row = page.locator('.session-row', { hasText: 'An idea that went nowhere' });
    await row.getByRole('button', { name: 'Pin' }).click();
    await row.getByRole('img', { name: 'Pinned' }).waitFor();
    await row.getByRole('button', { name: 'Unpin' }).click();
    await row.getByRole('button', { name: 'Move to the trash' }).click();
    await row.waitFor({ state: 'detached' });
    await button(page, 'Undo').click();
    await row.waitFor();
    await row.getByRole('button', { name: 'Move to the trash' }).click();
    await row.waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'Trash' }).click();
    await row.getByRole('button', { name: 'Restore' }).click();
    await row.waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'Back to sessions' }).click();
    await row.waitFor();
    await page.getByLabel('Status').selectOption('paused');
    await row.waitFor({ state: 'detached' });
    await page.locator('.session-row', { hasText: 'Clean the build folder' }).waitFor();
    isWell(page);
  });

  await claim('by mouse: logs are verified, and denying tells the model why', async () => {
    const page = await open(browser, world);
    const card = page.locator('.gate-card', { hasText: 'Clean the build folder' });
    await card.getByRole('button', { name: 'Deny' }).click();
    await card.getByLabel('Reason, for the model').fill('keep the cache');
    await card.getByRole('button', { name: 'Deny' }).click();
    await card.waitFor({ state: 'detached' });
    await page.goto(at(world, home, world.gate));
    await page.getByText('denied: keep the cache').waitFor();
    await page.getByRole('link', { name: 'Health', exact: true }).click();
    await button(page, 'Verify every log').first().click();
    await page.locator('.verify .badge.good').getByText('verified').waitFor();
    isWell(page);
  });
}

export async function byKeyboard({ world, browser, claim }) {
  await claim(
    'by keyboard alone: a task is started, approved, denied with a reason, spoken to, forked and compared',
    async () => {
      script(world, 'keys', 'keys.txt');
      const page = await open(browser, world);
      // Keys mean the same however late lists and answers come.
      await page.route(/\/gates/, async (route) => {
        await new Promise((resolve) => {
          setTimeout(resolve, 600);
        });
        await route.continue();
      });
      const keys = page.keyboard;
      await keys.press('g');
      await keys.press('n');
      await until(page, 'the task has the focus', () => document.activeElement?.tagName === 'TEXTAREA');
      await until(page, 'the form is ready', () => document.querySelector('select option[value=explore]'));
      await keys.type('Write keys.txt with two lines');
      await keys.press('Control+Enter');
      await page.locator('.gate-card .add').getByText('two').waitFor();
      await page.locator('.gate-card[data-still]').waitFor();
      await keys.press('j');
      await press(page, 'Allow once');
      await page.locator('.gate-card .add').getByText('three').waitFor();
      await page.locator('.gate-card[data-still]').waitFor();
      await keys.press('j');
      await tabTo(page, 'an answer', () => document.activeElement?.textContent.trim() === 'Allow once');
      await keys.press('ArrowRight');
      await keys.press('ArrowRight');
      await keys.press('Enter');
      await until(page, 'the reason has the focus', () =>
        document.activeElement?.getAttribute('aria-label')?.startsWith('Reason'),
      );
      await keys.type('two lines are enough');
      await keys.press('Enter');
      await page.getByText('denied: two lines are enough').waitFor();
      await page.getByText('There it is.').waitFor();
      await page.locator('.status.success, .status.partial').first().waitFor();
      assert.equal(world.read('keys.txt'), 'one\ntwo\n');
      await toComposer(page);
      await keys.type('Say it again');
      await keys.press('Enter');
      await page.getByText('With pleasure, again.').waitFor();
      await keys.press('Escape');
      const id = idOf(page);
      await keys.press('t');
      await page.getByRole('slider').waitFor();
      await page.locator('.strip .mark.step').first().waitFor({ state: 'attached' });
      await keys.press('[');
      await keys.press('[');
      await press(page, 'Fork here');
      await page.getByRole('dialog').waitFor();
      await keys.type('keys fork');
      await keys.press('Enter');
      await page.getByRole('heading', { name: 'keys fork' }).waitFor();
      assert.notEqual(idOf(page), id);
      await keys.press('v');
      await page.getByText('They part behind event').waitFor();
      isWell(page);
    },
  );

  await claim(
    'by keyboard alone: sessions are walked through, pinned, renamed, trashed, taken back and searched',
    async () => {
      const page = await open(browser, world);
      const keys = page.keyboard;
      await keys.press('g');
      await keys.press('s');
      await page.getByRole('heading', { name: 'Sessions', level: 1 }).waitFor();
      await page.locator('.session-row', { hasText: 'keys fork' }).waitFor();
      const title = () =>
        page.evaluate(
          () => document.activeElement?.closest('.session-row')?.querySelector('.session-title')?.textContent,
        );
      for (let n = 0; n < 30 && !(await title())?.includes('An idea'); n += 1) await keys.press('j');
      assert.match(await title(), /An idea that went nowhere/);
      const row = page.locator('.session-row', { hasText: 'nowhere' });
      await press(page, 'Pin');
      await row.getByRole('img', { name: 'Pinned' }).waitFor();
      await row.focus();
      await press(page, 'Rename and tag');
      await page.getByRole('dialog').getByLabel('Name', { exact: true }).waitFor();
      await keys.type('nowhere idea');
      await keys.press('Enter');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      await page.locator('.session-title', { hasText: 'nowhere idea' }).waitFor();
      await until(page, 'the focus is back in the row', () => document.activeElement?.closest('.session-row'));
      await press(page, 'Move to the trash');
      await row.waitFor({ state: 'detached' });
      await keys.press('Control+z');
      await row.waitFor();
      await page.evaluate(() => document.activeElement?.blur());
      await keys.press('/');
      await keys.type('pleasure');
      await page.getByRole('option').first().waitFor();
      await keys.press('ArrowDown');
      await keys.press('Enter');
      await page.locator('.item.target').waitFor();
      for (const [key, heading] of [
        ['c', 'Cost'],
        ['h', 'Health'],
        ['t', 'Trash'],
        ['i', 'Inbox'],
      ]) {
        await keys.press('g');
        await keys.press(key);
        await page.getByRole('heading', { name: heading, level: 1 }).waitFor();
      }
      isWell(page);
    },
  );

  await claim(
    'by keyboard alone: a session is moved back after a dry run, taken back, resumed and stopped',
    async () => {
      const home = await storeKey(world, 'greeter');
      const turns = Array.from({ length: 100 }, (_, n) => ({
        text: `Turn ${n + 1}.`,
        delay_ms: 200,
        usage: { input: 10, output: 5 },
        calls: [call('list_files', { path: '.' })],
      }));
      const model = world.script('back', [
        { text: 'One.', usage: { input: 9, output: 4 }, calls: [call('write_file', { path: 'back.txt', content: 'one\n' })] },
        { text: 'Two.', usage: { input: 9, output: 4 }, calls: [call('write_file', { path: 'back.txt', content: 'two\n' })] },
        { text: 'Done.', usage: { input: 9, output: 4 } },
        ...turns,
      ]);
      world.run(['run', 'Write back.txt twice', '--mode', 'yolo', '--model', model]);
      const id = world.newest();
      const page = await open(browser, world);
      const keys = page.keyboard;
      await page.goto(at(world, home, id));
      await page.getByText('Done.').waitFor();
      await keys.press('t');
      await page.locator('.strip .mark.step').first().waitFor({ state: 'attached' });
      const first = world.json(['log', id]).filter((event) => event.kind === 'step')[0].seq;
      while (!page.url().endsWith(`at=${first}`)) {
        const before = page.url();
        await keys.press('[');
        await page.waitForURL((address) => address.href !== before);
      }
      await press(page, 'Rewind to here');
      await page.locator('.dry-run').getByText('back.txt').waitFor();
      assert.equal(world.read('back.txt'), 'two\n', 'a dry run changes nothing');
      await press(page, 'Rewind');
      await page.getByText(`Rewound to ${first}.`).waitFor();
      assert.equal(world.read('back.txt'), 'one\n');
      await keys.press('Control+z');
      await page.getByText('The rewind is taken back.').waitFor();
      assert.equal(world.read('back.txt'), 'two\n');
      await keys.press('c');
      await page.getByText('Done.').first().waitFor();
      await toComposer(page);
      await keys.type('Now turn');
      await keys.press('Enter');
      await page.getByText('Turn 2.').waitFor();
      await keys.press('Escape');
      await press(page, 'Stop');
      await page.locator('.status.interrupted').first().waitFor();
      await press(page, 'Resume');
      await page.locator('.status.running').first().waitFor();
      await press(page, 'Stop');
      await page.locator('.status.interrupted').first().waitFor();
      isWell(page);
    },
  );
}
