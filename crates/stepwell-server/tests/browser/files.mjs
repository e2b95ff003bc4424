// The page's files: what is vendored is what was published, and every file is served.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { open } from './browser.mjs';
import { assert } from './expect.mjs';

const PAGE = fileURLToPath(new URL('../../page', import.meta.url));
const ASSETS = fileURLToPath(new URL('../../src/assets.rs', import.meta.url));
const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');

/** How much a first visit may load. */
const FIRST_LOAD = 150_000;

export async function files({ world, browser, claim }) {
  await claim('vendored files have the digests that are written down', () => {
    const lines = readFileSync(join(PAGE, 'vendor/DIGESTS'), 'utf8')
      .split('\n')
      .filter((line) => line && !line.startsWith('#'));
    const listed = lines.map((line) => line.split(/\s+/)[1]);
    const there = readdirSync(join(PAGE, 'vendor')).filter((name) => name !== 'DIGESTS');
    assert.deepEqual(listed.sort(), there.sort());
    for (const line of lines) {
      const [digest, name] = line.split(/\s+/);
      assert.equal(sha256(readFileSync(join(PAGE, 'vendor', name))), digest, name);
    }
    const [published] = /As published: (\w+)/.exec(readFileSync(join(PAGE, 'vendor/DIGESTS'), 'utf8')).slice(1);
    const hooks = readFileSync(join(PAGE, 'vendor/hooks.mjs'), 'utf8').replace('from"./preact.mjs"', 'from"preact"');
    assert.equal(sha256(hooks), published);
  });

  await claim('every import leads to a file that is served', () => {
    const served = new Set([...readFileSync(ASSETS, 'utf8').matchAll(/^ {4}"([^"]+)", "/gm)].map((found) => found[1]));
    const there = readdirSync(PAGE, { recursive: true, withFileTypes: true })
      .filter((it) => it.isFile() && !/LICENSE|DIGESTS/.test(it.name))
      .map((it) => join(it.parentPath ?? it.path, it.name).slice(PAGE.length + 1));
    assert.deepEqual([...served].sort(), there.sort());
    for (const file of there.filter((name) => /\.m?js$/.test(name))) {
      const text = readFileSync(join(PAGE, file), 'utf8');
      for (const [, name] of text.matchAll(/(?:from|import)\s*\(?\s*["'](\.[^"']+)["']/g)) {
        assert.ok(served.has(normalize(join(dirname(file), name))), `${file} imports ${name}`);
      }
      assert.ok(
        !/\beval\(|new Function\b|innerHTML\s*=|insertAdjacentHTML|document\.write/.test(
          file.startsWith('vendor/') ? '' : text,
        ),
        `${file} makes markup or code of text`,
      );
    }
  });

  await claim('the types that are written down hold', () => {
    const compiler = process.env.STEPWELL_TYPESCRIPT;
    if (!compiler) throw new Error('STEPWELL_TYPESCRIPT is not set: eval "$(./install-witnesses)" sets it');
    const done = spawnSync(compiler, ['-p', fileURLToPath(new URL('tsconfig.json', import.meta.url))], {
      encoding: 'utf8',
    });
    assert.equal(done.status, 0, done.stdout + done.stderr);
  });

  await claim('the printed link logs a browser in once, and leaves no code behind', async () => {
    const link = await world.link();
    const page = await open(browser, world, { login: false });
    await page.goto(link);
    await page.getByRole('heading', { name: 'Inbox' }).waitFor();
    assert.ok(!page.url().includes(link.split('#')[1]));
    const other = await open(browser, world, { login: false });
    await other.goto(link);
    await other.getByRole('alert').waitFor();
    await other.getByLabel('Link or token').fill(world.token);
    await other.getByRole('button', { name: 'Log in' }).click();
    await other.getByRole('heading', { name: 'Inbox' }).waitFor();
  });

  await claim(`a first visit loads at most ${FIRST_LOAD / 1000} KB`, async () => {
    const page = await open(browser, world, { login: false });
    const sizes = [];
    page.on('response', (response) => {
      if (!response.url().includes('/api/'))
        sizes.push(
          response.body().then(
            (body) => body.length,
            () => 0,
          ),
        );
    });
    await page.goto(`${world.origin}/login#${world.token}`);
    await page.locator('.gate-card').first().waitFor();
    const total = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
    assert.ok(total > 50_000 && total <= FIRST_LOAD, `${total} bytes`);
  });
}
