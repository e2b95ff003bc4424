// What must be so, said once.
import assert from 'node:assert/strict';

export { assert };

/** Waits until something is true of the page. */
export async function until(page, what, check, ...given) {
  try {
    await page.waitForFunction(check, ...given);
  } catch (error) {
    throw new Error(`${what}: ${error.message}`);
  }
}

/** Nothing went wrong on a page: no error, no refusal of the policy. */
export function isWell(page) {
  assert.deepEqual(page.wrong, []);
}

/** The address of a session's screen. */
export function at(world, store, id, rest = '') {
  return `${world.origin}/#/s/${store}/${id}${rest}`;
}

/** The key of the store whose workspace ends in a name. */
export async function storeKey(world, name) {
  const { items } = await world.api('/stores');
  return items.find((store) => store.workspace.endsWith(name)).key;
}

/** Has a run ask something, and gives its session. */
export function ask(world, name, calls) {
  const answers = calls.map((it) => ({ text: 'May I?', usage: { input: 10, output: 1 }, calls: [it] }));
  const model = world.script(name, answers.concat([{ text: 'Thanks.', usage: { input: 10, output: 1 } }]));
  world.run(['run', `Ask ${name}`, '--model', model], { ok: [8] });
  return world.newest();
}

/** Presses Tab until the element that has the focus is the one that is meant. */
export async function tabTo(page, what, isMeant, given) {
  for (let n = 0; n < 80; n += 1) {
    if (await page.evaluate(isMeant, given)) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`Tab does not lead to ${what}`);
}

/** Presses Tab until a button has the focus, and Enter. */
export async function press(page, name) {
  await tabTo(page, name, (wanted) => {
    const it = document.activeElement;
    return it?.matches('button') && (it.getAttribute('aria-label') ?? it.textContent.trim()) === wanted;
  }, name);
  await page.keyboard.press('Enter');
}

/** Presses Tab until the field for a message has the focus. */
export function toComposer(page) {
  return tabTo(page, 'the message', () => document.activeElement?.id === 'say');
}
