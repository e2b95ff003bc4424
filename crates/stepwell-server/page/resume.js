// @ts-check
// Resumes a session. A run that has just ended holds its session for a moment longer.
import { change, sessionPath } from './api.js';

const TRIES = 10;
const PAUSE = 400;

/** @param {string} store @param {string} id @param {{say?: string}} [how] */
export async function resumeSession(store, id, how = {}) {
  for (let tries = 1; ; tries += 1) {
    try {
      return await change('POST', sessionPath(id, '/resume'), how, { store });
    } catch (problem) {
      if (/** @type {any} */ (problem).kind !== 'busy' || tries === TRIES) throw problem;
      await new Promise((resolve) => {
        setTimeout(resolve, PAUSE);
      });
    }
  }
}
