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
