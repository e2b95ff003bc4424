// Every screen, wide and narrow, light and dark.
import { open, serious } from './browser.mjs';
import { assert, at, isWell, storeKey, until } from './expect.mjs';

/** What can be scrolled by a few pixels only: a bar that nobody needs. */
function strayBars() {
  const few = (inner, outer) => inner > outer && inner - outer < 12;
  return [...document.querySelectorAll('body *')]
    .filter((it) => it.clientHeight && it.clientWidth && !it.matches('.unseen'))
    .filter((it) => {
      const { overflowX, overflowY } = getComputedStyle(it);
      const scrolls = (how) => how === 'auto' || how === 'scroll';
      return (
        (scrolls(overflowY) && few(it.scrollHeight, it.clientHeight)) ||
        (scrolls(overflowX) && few(it.scrollWidth, it.clientWidth))
      );
    })
    .map((it) => `${it.tagName}.${it.className} ${it.scrollWidth}/${it.clientWidth} ${it.scrollHeight}/${it.clientHeight}`);
}

export async function screens({ world, browser, claim, shot }) {
  const home = await storeKey(world, 'greeter');
  const session = (id, rest) => at(world, home, id, rest);
  const point = world.json(['log', world.greet]).filter((event) => event.kind === 'step')[2].seq;
  /** Each screen: its name, its address, and something that only it shows when it is ready. */
  const all = [
    ['inbox', `${world.origin}/#/inbox`, (page) => page.getByText('rm -rf build && make all')],
    ['sessions', `${world.origin}/#/sessions`, (page) => page.getByText('Tidy the notes')],
    ['session', session(world.greet), (page) => page.getByRole('cell', { name: 'hello, Ann' })],
    ['flow', session(world.flow), (page) => page.getByRole('button', { name: /step\/2/ })],
    ['time', session(world.greet, `/time?at=${point}`), (page) => page.getByText('The script comes first.')],
    [
      'files',
      session(world.greet, `/time?at=${point}&tab=files`),
      (page) => page.locator('.diff').getByText('hello, $name'),
    ],
    [
      'compare',
      session(world.greet, `/compare?with=${world.fork}`),
      (page) => page.locator('.diff').getByText('${1:-you}').first(),
    ],
    ['cost', `${world.origin}/#/cost`, (page) => page.getByRole('img', { name: /By day/ })],
    ['health', `${world.origin}/#/health`, (page) => page.getByText('all is well').first()],
    ['start', `${world.origin}/#/start`, (page) => page.getByRole('combobox', { name: 'Agent' }).getByText('explore')],
    ['trash', `${world.origin}/#/trash`, (page) => page.getByText('The trash is empty.')],
  ];
  for (const [width, height, colorScheme] of [
    [1440, 900, 'light'],
    [390, 844, 'dark'],
  ]) {
    await claim(`every screen is whole and accessible at ${width} pixels, in ${colorScheme} colours`, async () => {
      const page = await open(browser, world, { width, height, colorScheme });
      for (const [name, address, ready] of all) {
        await page.goto(address);
        await ready(page)
          .first()
          .waitFor({ state: name === 'start' ? 'attached' : 'visible' });
        const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        assert.ok(over <= 0, `${name} is ${over} pixels too wide`);
        assert.deepEqual(await page.evaluate(strayBars), [], name);
        assert.deepEqual(await serious(page), [], name);
        await shot(page, width === 1440 ? name : `${name}-narrow`);
      }
      isWell(page);
    });
  }

  await claim('a login that nobody has shows the login, also in the middle of work', async () => {
    const page = await open(browser, world);
    await page.context().clearCookies();
    await page.goto(`${world.origin}/#/cost`);
    await page.getByLabel('Link or token').fill('wrong');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.locator('.login').getByRole('alert').waitFor();
    await shot(page, 'login');
    await page.getByLabel('Link or token').fill(world.token);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('heading', { name: 'Cost' }).waitFor();
  });

  await claim('whoever logs out is out, and is told so only then', async () => {
    const page = await open(browser, world);
    await page.locator('.gate-card').first().waitFor();
    const body = JSON.stringify({ title: 'the logout could not be kept', kind: 'io', status: 503 });
    await page.route('**/logout', (route) =>
      route.fulfill({ status: 503, contentType: 'application/problem+json', body }),
    );
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByText('the logout could not be kept').waitFor();
    assert.equal(await page.getByLabel('Link or token').count(), 0, 'they are still in');
    await page.unroute('**/logout');
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByLabel('Link or token').waitFor();
    assert.equal(await page.locator('.gate-card').count(), 0, 'nothing of what was shown is left');
    await page.goto(`${world.origin}/#/sessions`);
    await page.getByLabel('Link or token').waitFor();
  });

  await claim('the policy is in force: no text becomes markup or code on this page', async () => {
    const page = await open(browser, world);
    const refused = await page.evaluate(() =>
      ['innerHTML', 'outerHTML'].map((name) => {
        try {
          document.querySelector('main')[name] = '<b>x</b>';
          return 'taken';
        } catch (error) {
          return error.name;
        }
      }),
    );
    assert.deepEqual(refused, ['TypeError', 'TypeError']);
    const policies = await page.evaluate(() => {
      try {
        globalThis.trustedTypes.createPolicy('any', {});
        return 'made';
      } catch (error) {
        return error.name;
      }
    });
    assert.equal(policies, 'TypeError');
  });

  await claim('the keys are listed, and colours can be chosen', async () => {
    const page = await open(browser, world);
    // It is open as soon as it is drawn: whoever presses Escape at once closes it.
    const isOpen = await page.evaluate(async () => {
      document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '?', bubbles: true }));
      await null;
      return document.querySelector('dialog[open]') !== null;
    });
    assert.ok(isOpen);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).getByText('Previous, next mark').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: /Colours: auto/ }).click();
    await page.getByRole('button', { name: /Colours: light/ }).click();
    await until(page, 'dark colours', () => document.documentElement.dataset.theme === 'dark');
    isWell(page);
  });

  await claim('a server that is read-only offers nothing that changes something', async () => {
    const port = world.port;
    const reader = await world.another(['--read-only']);
    const page = await open(browser, reader);
    await page.getByText('You may look, but not answer.').first().waitFor();
    assert.equal(await page.getByRole('button', { name: 'Allow once' }).count(), 0);
    await page.goto(at(reader, home, world.greet));
    await page.getByText('The script comes first.').waitFor();
    for (const name of ['Resume', 'Rename', 'Stop', 'Say'])
      assert.equal(await page.getByRole('button', { name, exact: true }).count(), 0, name);
    await page.goto(`${reader.origin}/#/start`);
    await page.getByText('This server starts nothing here.').waitFor();
    assert.notEqual(reader.port, port);
    isWell(page);
    await reader.kill();
  });
}
