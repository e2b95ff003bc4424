// @ts-check
// Light and dark: the system's setting, or the one chosen in this browser.
import { state, update } from './state.js';

const KEY = 'stepwell-theme';
const THEMES = ['auto', 'light', 'dark'];

/** Restores the chosen colours. */
export function wearTheme() {
  wear(localStorage.getItem(KEY) ?? 'auto');
}

/** Switches to the next colours. */
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
