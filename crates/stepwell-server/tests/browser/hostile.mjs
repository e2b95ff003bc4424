// A session that somebody made to hurt whoever looks at it, and that is far too long.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { open } from './browser.mjs';
import { assert, at, isWell, storeKey, until } from './expect.mjs';

const ID = '20260101-000000-badbad';
const EVENTS = 20_000;
/** How many events of a session the page shows at first, at most. */
const SHOWN = 600;

/** Waits until something is there. */
async function shows(page, address, ready) {
  await page.goto(address);
  await ready.first().waitFor();
}

const NASTY = [
  '<script>window.pwned = 1</script><img src=x onerror="window.pwned = 2"><svg onload="window.pwned = 3"></svg>',
  '[click me](javascript:window.pwned=4) and [me](data:text/html,<script>window.pwned=5</script>) ![x](https://evil.example/pixel.png)',
  '\u001b[31mred\u001b[0m \u001b]0;title\u0007 \u001b]8;;https://evil.example\u0007link\u001b]8;;\u0007 \u0008\u0008\u0000',
  'rm -rf ~ \u202e safe only is this \u2066 מה שלום \u2069 العربية',
  '```\n</code></pre><script>window.pwned = 6</script>\n```\n| a | b |\n|---|---|\n| <b>x</b> | `<i>` |',
  `${'*'.repeat(4000)}${'['.repeat(4000)}${'> '.repeat(2000)}`,
];

/** The session as lines of an archive. */
function archive() {
  const time = (n) => new Date(Date.UTC(2026, 0, 1) + n * 1000).toISOString();
  const lines = [
    { stepwell_archive: 1, exported_by: '0.1.0', sessions: 1 },
    { id: ID, origin: 'root' },
  ];
  let seq = 0;
  const event = (kind, body) => {
    seq += 1;
    lines.push({ seq, at: time(seq), kind, version: 1, body });
  };
  const message = (role, parts) => event('message', { lane: 'main', role, parts });
  const text = (it) => ({ text: { text: it } });
  event('created', {
    id: ID,
    task: `${NASTY[0]} ${NASTY[3]}`,
    agent: '<b>agent</b>',
    model: '"><script>window.pwned=7</script>',
    provider: 'x',
    workspace: '/tmp/<i>',
    driver: 'own',
    origin: 'root',
  });
  message('user', [text(NASTY[0])]);
  while (seq < EVENTS - 40)
    message(seq % 2 ? 'user' : 'assistant', [text(`Line ${seq}: ${NASTY[seq % NASTY.length].slice(0, 200)}`)]);
  message('assistant', [
    ...NASTY.map(text),
    { thinking: { text: NASTY[0] } },
    { image: { media_type: 'image/png', data: 'https://evil.example/pixel.png' } },
    { image: { media_type: 'image/svg+xml', data: 'PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIj48L3N2Zz4=' } },
    {
      tool_call: {
        id: 'c1',
        name: 'run_<b>command',
        arguments: JSON.stringify({ command: `${NASTY[3]}\n${NASTY[0]}` }),
      },
    },
  ]);
  message('tool', [{ tool_result: { call_id: 'c1', text: NASTY.join('\n') } }]);
  message('assistant', [text(`A long line: ${'x'.repeat(5 << 20)}`)]);
  event('error', { message: NASTY[0] });
  event('checkpoint', { name: '<script>name', reason: 'manual' });
  message('assistant', [text('The very last words.')]);
  lines.push({ end: ID, events: seq });
  return `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`;
}

export async function hostile({ world, browser, claim, shot }) {
  const home = await storeKey(world, 'greeter');
  const file = join(world.root, 'hostile.jsonl');

  await claim(`a hostile session of ${EVENTS} events, one of them 5 MB long, stays harmless and quick`, async () => {
    writeFileSync(file, archive());
    world.run(['import', file]);
    const page = await open(browser, world);
    const foreign = [];
    page.on('request', (request) => {
      if (!request.url().startsWith(world.origin) && !request.url().startsWith('data:')) foreign.push(request.url());
    });
    page.on('dialog', (dialog) => {
      page.wrong.push(`a dialog: ${dialog.message()}`);
      dialog.dismiss();
    });
    await shows(page, at(world, home, world.greet), page.getByText('The script comes first.'));
    await shows(page, at(world, home, ID), page.getByText('The very last words.'));
    // The work is bounded by what is shown, not by how long the session is.
    const drawn = await page.locator('ol.items > li').count();
    assert.ok(drawn <= SHOWN, `${drawn} of ${EVENTS} events are drawn at once`);
    await page.getByRole('button', { name: 'Unfold tool calls' }).click();
    await page.locator('.call pre.command').waitFor();
    for (const fold of await page.locator('.thinking').all()) await fold.locator('summary').click();
    await shot(page, 'hostile');
    const shown = await page.evaluate(() => ({
      pwned: globalThis.pwned,
      scripts: document.querySelectorAll('main script, main iframe, main object').length,
      pictures: document.querySelectorAll('main .items img').length,
      handlers: [...document.querySelectorAll('main *')].filter((it) =>
        [...it.attributes].some((attribute) => attribute.name.startsWith('on')),
      ).length,
      links: [...document.querySelectorAll('main .items a')]
        .map((it) => it.getAttribute('href'))
        .filter((href) => !/^(#|https?:)/.test(href)),
      text: document.querySelector('main').textContent.length,
      escapes: /[\u001b\u0000\u0008\u202e]/.test(document.querySelector('main').textContent),
    }));
    assert.deepEqual(
      { ...shown, text: shown.text < 1_000_000 },
      { pwned: undefined, scripts: 0, pictures: 0, handlers: 0, links: [], text: true, escapes: false },
    );
    await page.getByRole('button', { name: /Show more: .* of 5\.0 MB/ }).click();
    await page.getByRole('button', { name: /Show earlier/ }).click();
    await until(page, 'earlier events', () => document.querySelectorAll('ol.items > li').length > 600);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(over <= 0, `it is ${over} pixels too wide`);
    assert.deepEqual(foreign, []);
    isWell(page);
  });

  await claim('time travel through a hostile session stays harmless and quick', async () => {
    const page = await open(browser, world);
    const messages = page.locator('ol[aria-label=Messages] > li');
    await shows(page, at(world, home, world.greet, '/time?at=20'), messages);
    await page.goto(`${world.origin}/#/health`);
    await shows(page, at(world, home, ID, '/time?at=300'), messages);
    const drawn = await messages.count();
    assert.ok(drawn <= SHOWN, `${drawn} messages are drawn at once`);
    assert.equal(await page.evaluate(() => globalThis.pwned), undefined);
    for (const screen of ['#/sessions', '#/inbox', '#/cost']) {
      await page.goto(`${world.origin}/${screen}`);
      await page.getByRole('heading', { level: 1 }).waitFor();
    }
    assert.equal(await page.evaluate(() => globalThis.pwned), undefined);
    isWell(page);
  });
}
