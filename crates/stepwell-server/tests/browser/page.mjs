// The page in a real browser, over a real server.
//
//   eval "$(./install-witnesses)"
//   node crates/stepwell-server/tests/browser/page.mjs target/debug/stepwell [--shots DIR] [--only TEXT]
//
// STEPWELL_PAGE_FROM_DISK=1 tests the files in page/ in place of those in the program, but for page/hub.js: the
// shared worker loads it from the program.
// STEPWELL_PAGE_DELAY=500 has each request wait for up to half a second: answers overtake each other.
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { launch } from './browser.mjs';
import { World } from './world.mjs';
import { files } from './files.mjs';
import { screens } from './screens.mjs';
import { byKeyboard, byMouse } from './day.mjs';
import { hostile } from './hostile.mjs';
import { together } from './together.mjs';
import { tabs } from './tabs.mjs';
import { phone } from './phone.mjs';
import { decisions } from './decisions.mjs';
import { typing } from './typing.mjs';
import { importing } from './importing.mjs';

const args = process.argv.slice(2);
const option = (name) => {
  const at = args.indexOf(name);
  return at < 0 ? undefined : args.splice(at, 2)[1];
};
const shots = option('--shots');
const only = option('--only');
const [binary] = args;
if (!binary) {
  console.error('usage: node page.mjs BINARY [--shots DIR] [--only TEXT]');
  process.exit(2);
}
if (shots) mkdirSync(shots, { recursive: true });

/** However slow the machine: what takes longer hangs. */
const LONGEST = 30 * 60_000;
const clock = setTimeout(async () => {
  console.error('error: the tests did not end in time');
  await world.end();
  process.exit(1);
}, LONGEST);

let passed = 0;
const failed = [];
const world = new World(resolve(binary));
let browser;

/** Checks a claim, and goes on whatever comes of it. */
async function claim(name, check) {
  if (only && !name.includes(only)) return;
  const begin = Date.now();
  try {
    await check();
    passed += 1;
    console.log(`ok ${name} (${((Date.now() - begin) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed.push(name);
    console.log(`FAILED ${name}\n${String(error.stack ?? error).slice(0, 3000)}`);
    const { child, err, signal } = world.server ?? {};
    if (child && (child.exitCode !== null || signal))
      console.log(`the server ended: ${child.exitCode ?? signal}\n${err.slice(-2000)}`);
    const pages = browser?.contexts().flatMap((context) => context.pages()) ?? [];
    for (const [n, page] of pages.entries()) {
      const shown = await page.evaluate(() => document.body.innerText).catch(() => '');
      console.log(`page ${n} shows ${page.url()}\n${shown.slice(-2000)}`);
      if (shots)
        await page.screenshot({ path: join(shots, `failed-${failed.length}-${n}.png`) }).catch(() => undefined);
    }
  }
  for (const context of browser?.contexts() ?? []) await context.close();
}

try {
  world.fill();
  world.fillMore();
  await world.serve();
  browser = await launch();
  const test = {
    world,
    browser,
    claim,
    shot: (page, name) => (shots ? page.screenshot({ path: join(shots, `serve-${name}.png`) }) : undefined),
  };
  await files(test);
  await screens(test);
  await together(test);
  await phone(test);
  await byMouse(test);
  await byKeyboard(test);
  await hostile(test);
  await decisions(test);
  await typing(test);
  // Last: these leave sessions behind.
  await importing(test);
  await tabs(test);
} finally {
  clearTimeout(clock);
  await browser?.close();
  await world.end();
}
console.log(`${passed} passed`);
if (failed.length) {
  console.error(`error: ${failed.length} failed: ${failed.join('; ')}`);
  process.exit(1);
}
