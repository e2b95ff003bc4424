// @ts-check
// Our own icons, because not every system's fonts have them.
import { html } from './html.js';

const PATHS = /** @type {Record<string, string>} */ ({
  inbox: 'M3 13h4l1.5 3h7L17 13h4M3 13l3-8h12l3 8v6H3z',
  sessions: 'M8 6h13M8 12h13M8 18h13M3.5 6h.01M3.5 12h.01M3.5 18h.01',
  start: 'M12 5v14M5 12h14',
  cost: 'M4 20V10M10 20V4M16 20v-7M22 20H2',
  health: 'M3 12h4l3-7 4 14 3-7h4',
  star: 'M12 3.5l2.6 5.4 5.9.8-4.3 4.1 1 5.9L12 16.9l-5.2 2.8 1-5.9L3.5 9.7l5.9-.8z',
  pencil: 'M4 20l1-4L16.5 4.5l3 3L8 19zM14 7l3 3',
  trash: 'M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v5M14 11v5',
});

/** @param {{name: string, filled?: boolean}} props */
export function Icon({ name, filled }) {
  return html`<svg class=${`icon-picture ${filled ? 'filled' : ''}`} viewBox="0 0 24 24" aria-hidden="true">
    <path d=${PATHS[name]} /></svg>`;
}
