// @ts-check
// Things that stand still. Whoever presses a button means what was there when they aimed: what has
// just come, or just moved to where another one was, was not aimed at.
import { useLayoutEffect, useState } from './html.js';

/** How long something has to be there, or to stand still, before it can be meant. */
const WHILE = 500;

/** @type {Map<HTMLElement, {came: number, moved: number, inView: number, onPage: number, set: (still: boolean) => void}>} */
const watched = new Map();

/** @param {HTMLElement} element */
function place(element) {
  const inView = Math.round(element.getBoundingClientRect().top);
  return { inView, onPage: inView + Math.round(window.scrollY) };
}

/** Looks where an element is. To scroll moves it in view, to add what is above and scroll as far moves it on the page: neither is a surprise. @param {HTMLElement} element */
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

/** Watches an element, and says whether it stands still. @param {{current: HTMLElement | null}} of */
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
  // What is drawn anew may be elsewhere, once all of it is drawn.
  useLayoutEffect(() => {
    requestAnimationFrame(() => of.current && look(of.current));
  });
  return still;
}

/** Can an element be meant by a press at its place? @param {HTMLElement | null} element */
export function stands(element) {
  if (element) look(element);
  const known = element && watched.get(element);
  return !known || performance.now() - Math.max(known.came, known.moved) >= WHILE;
}
