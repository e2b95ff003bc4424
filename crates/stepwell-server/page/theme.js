// @ts-check
// Light and dark: as the system has it, or as it was chosen in this browser.
import { state, update } from './state.js';

const KEY = 'stepwell-theme';
const THEMES = ['auto', 'light', 'dark'];

/** Takes the colours that were chosen before. */
export function wearTheme() {
  wear(localStorage.getItem(KEY) ?? 'auto');
}

/** Goes on to the next colours. */
export function nextTheme() {
  wear(THEMES[(THEMES.indexOf(state.theme) + 1) % THEMES.length]);
  localStorage.setItem(KEY, state.theme);
}

/** @param {string} theme */
function wear(theme) {
  if (theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  update({ theme });
}
