// Chromium, and what every claim needs of it.
import { readFileSync, existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';

const PAGE = fileURLToPath(new URL('../../page', import.meta.url));
const MEDIA = {
  html: 'text/html',
  css: 'text/css',
  js: 'text/javascript',
  mjs: 'text/javascript',
  svg: 'image/svg+xml',
};

/** Names a program or module that the environment brings. */
function named(variable, hint) {
  const path = process.env[variable];
  if (!path) throw new Error(`${variable} is not set: ${hint}`);
  return path;
}

export async function launch() {
  const { chromium } = await import(named('STEPWELL_PLAYWRIGHT', 'eval "$(./install-witnesses)" sets it'));
  const executablePath = named('STEPWELL_CHROMIUM', 'eval "$(./install-witnesses)" sets it');
  // Root has no sandbox of Chromium's; a container is one.
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  return chromium.launch({ executablePath, args });
}

/** A browser's window of its own, logged in. What a page says of errors is kept in `wrong`. */
export async function open(browser, world, { width = 1280, height = 900, login = true, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, ...options });
  context.setDefaultTimeout(60_000);
  if (process.env.STEPWELL_PAGE_FROM_DISK) await fromDisk(context, world);
  await delay(context, Number(process.env.STEPWELL_PAGE_DELAY ?? 0));
  const page = await tab(context);
  if (login) {
    await page.goto(`${world.origin}/login#${world.token}`);
    await page.getByRole('heading', { name: 'Inbox' }).waitFor();
  }
  return page;
}

/** Another tab of a window. */
export async function tab(context) {
  const page = await context.newPage();
  page.wrong = [];
  page.on('pageerror', (error) => page.wrong.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error' && !/net::ERR|status of/.test(message.text())) page.wrong.push(message.text());
  });
  return page;
}

/** Has every request wait for up to so many milliseconds, so that answers overtake each other. */
async function delay(context, longest) {
  if (!longest) return;
  await context.route(/\/api\//, async (route) => {
    await new Promise((resolve) => {
      setTimeout(resolve, Math.random() * longest);
    });
    await route.fallback().catch(() => undefined);
  });
}

/** Serves the page's files as they are on disk, with the headers of the server. */
async function fromDisk(context, world) {
  let headers;
  await context.route(
    (url) => Number(url.port) === world.port && !url.pathname.startsWith('/api/'),
    async (route) => {
      const answer = headers ? null : await fetch(`${world.origin}/`).catch(() => null);
      if (answer) headers = Object.fromEntries(answer.headers);
      if (!headers) return route.abort();
      const { pathname } = new URL(route.request().url());
      const file = join(PAGE, pathname === '/' || pathname === '/login' ? 'index.html' : pathname);
      if (!existsSync(file)) return route.fulfill({ status: 404 });
      const { 'content-length': _, etag: __, ...kept } = headers;
      return route.fulfill({
        body: readFileSync(file),
        headers: { ...kept, 'content-type': `${MEDIA[file.split('.').pop()]}; charset=utf-8` },
      });
    },
  );
}

/** What axe finds that keeps somebody from using the page. */
export async function serious(page) {
  const source = readFileSync(named('STEPWELL_AXE', 'eval "$(./install-witnesses)" sets it'), 'utf8');
  // The policy of the page lets no foreign script in; the debugger does.
  await page.evaluate(source);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  return violations
    .filter((it) => ['serious', 'critical'].includes(it.impact))
    .map(
      (it) =>
        `${it.id}: ${it.nodes
          .map((node) => node.target.join(' '))
          .slice(0, 4)
          .join(', ')}`,
    );
}
