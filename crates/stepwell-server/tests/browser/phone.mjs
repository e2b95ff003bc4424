// The page on a phone: what is asked is in view, and what is done is done with a thumb.
import { open } from './browser.mjs';
import { assert, isWell, until } from './expect.mjs';

const call = (tool, args) => ({ tool, arguments: args });

/** Can every part of an element be seen and pressed? Says which cannot. */
function hidden(element) {
  const box = element.getBoundingClientRect();
  const places = [box.top + 2, (box.top + box.bottom) / 2, box.bottom - 2];
  return places
    .map((y) => [y, document.elementFromPoint((box.left + box.right) / 2, y)])
    .filter(([, found]) => !found || !(element.contains(found) || found.contains(element)))
    .map(([y, found]) => `at ${Math.round(y)}: ${found ? `${found.tagName}.${found.className}` : 'out of view'}`);
}

export async function phone({ world, browser, claim, shot }) {
  await claim('on a phone: inbox, list, session, a question in view that is answered, and a stop', async () => {
    const turns = Array.from({ length: 100 }, (_, n) => ({
      text: `Turn ${n + 1}.`,
      delay_ms: 200,
      usage: { input: 10, output: 5 },
      calls: [call('list_files', { path: '.' })],
    }));
    const model = world.script('phone', [
      {
        text: 'A long story first.\n\n'.repeat(40),
        usage: { input: 9, output: 1 },
        calls: [call('run_command', { command: 'echo phone > phone.txt\nls -l phone.txt' })],
      },
      ...turns,
    ]);
    const run = world.start(['run', 'Ask somebody on the way', '--wait', '--model', model]);
    const page = await open(browser, world, { width: 390, height: 844, hasTouch: true, isMobile: true });
    await page.locator('.gate-card', { hasText: 'echo phone' }).waitFor();
    await shot(page, 'phone-inbox');
    // The question comes after the conversation, as on a slow line.
    await page.route(/\/gates\?/, async (route) => {
      await new Promise((resolve) => {
        setTimeout(resolve, 700);
      });
      await route.continue();
    });
    await page.getByRole('link', { name: 'Sessions', exact: true }).tap();
    await page.locator('.session-row', { hasText: 'Ask somebody on the way' }).locator('a').first().tap();
    const card = page.locator('.gate-card[data-still]');
    await card.waitFor();
    await shot(page, 'phone-question');
    assert.deepEqual(await card.evaluate(hidden), []);
    for (const name of ['Allow once', 'Deny'])
      assert.deepEqual(await card.getByRole('button', { name, exact: true }).evaluate(hidden), [], name);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(over <= 0, `it is ${over} pixels too wide`);
    await card.getByRole('button', { name: 'Allow once' }).tap();
    await page.getByText('Turn 1.').waitFor();
    const stop = page.locator('.composer').getByRole('button', { name: 'Stop', exact: true });
    await until(page, 'the end is in view', () => {
      const end = document.querySelector('.end')?.getBoundingClientRect();
      return end && end.bottom < window.innerHeight + 160;
    });
    assert.deepEqual(await stop.evaluate(hidden), []);
    await shot(page, 'phone-running');
    await stop.tap();
    assert.equal(await run.over, 130, run.err);
    await page.locator('.status.interrupted').first().waitFor({ state: 'attached' });
    assert.equal(world.read('phone.txt'), 'phone\n');
    isWell(page);
  });

  await claim('on a phone: somebody logs out', async () => {
    const page = await open(browser, world, { width: 390, height: 844, hasTouch: true, isMobile: true });
    await page.getByRole('button', { name: 'Menu' }).tap();
    await shot(page, 'phone-menu');
    await page.getByRole('button', { name: 'Log out' }).tap();
    await page.getByLabel('Link or token').waitFor();
  });
}
