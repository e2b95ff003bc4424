// @ts-check
// Elements that have settled. A user who presses a button aims at what was there before: an element
// that just appeared, or just moved to another one's place, was not the target.
import { useLayoutEffect, useState } from './html.js';

/** How long an element must have been in its place before it can be the target. */
const WHILE = 500;

/** @type {Map<HTMLElement, {came: number, moved: number, inView: number, onPage: number, set: (still: boolean) => void}>} */
const watched = new Map();

/** @param {HTMLElement} element */
function place(element) {
  const inView = Math.round(element.getBoundingClientRect().top);
  return { inView, onPage: inView + Math.round(window.scrollY) };
}

/** Checks where an element is. Scrolling moves it in view, and added content above with matching scrolling moves it on the page: neither surprises the user. @param {HTMLElement} element */
function look(element) {
  const known = watched.get(element);
  if (!known) return;
  const now = place(element);
  if (now.inView !== known.inView && now.onPage !== known.onPage) known.moved = performance.now();
  Object.assign(known, now);
  const left = WHILE - (performance.now() - Math.max(known.came, known.moved));
  known.set(left <= 0);
  if (left > 0) setTimeout(() => look(element), left);
}

const layout = new ResizeObserver(() => watched.forEach((_, element) => look(element)));

/** Watches an element, and returns whether it has settled. @param {{current: HTMLElement | null}} of */
export function useStill(of) {
  const [still, set] = useState(false);
  useLayoutEffect(() => {
    const element = of.current;
    const main = document.getElementById('main');
    if (!element || !main) return undefined;
    watched.set(element, { came: performance.now(), moved: 0, ...place(element), set });
    if (watched.size === 1) layout.observe(main);
    look(element);
    return () => {
      watched.delete(element);
      if (!watched.size) layout.disconnect();
    };
  }, []);
  // A redrawn element may be elsewhere, once everything is drawn.
  useLayoutEffect(() => {
    requestAnimationFrame(() => of.current && look(of.current));
  });
  return still;
}

/** Can an element be the target of a press at its place? @param {HTMLElement | null} element */
export function stands(element) {
  if (element) look(element);
  const known = element && watched.get(element);
  return !known || performance.now() - Math.max(known.came, known.moved) >= WHILE;
}
