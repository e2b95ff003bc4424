// @ts-check
// The view library, in one place: templates become DOM nodes, never markup from text.
import { h, render as draw, Fragment, Component as Base } from './vendor/preact.mjs';
import * as hooks from './vendor/hooks.mjs';
import htm from './vendor/htm.mjs';

/** @typedef {() => (() => unknown) | void | undefined} Effect */

/** Tagged templates: html`<p>${text}</p>`. Text is always text. @type {(strings: TemplateStringsArray, ...values: any[]) => any} */
export const html = htm.bind(/** @type {any} */ (h));
export const render = /** @type {(node: any, into: Element) => void} */ (draw);
export const Component = /** @type {any} */ (Base);
export { Fragment };
export const useState = /** @type {<T>(first: T | (() => T)) => [T, (next: T | ((now: T) => T)) => void]} */ (
  /** @type {any} */ (hooks).useState
);
export const useEffect = /** @type {(effect: Effect, depends?: any[]) => void} */ (
  /** @type {any} */ (hooks).useEffect
);
export const useLayoutEffect = /** @type {(effect: Effect, depends?: any[]) => void} */ (
  /** @type {any} */ (hooks).useLayoutEffect
);
export const useRef = /** @type {<T>(first: T) => {current: T}} */ (/** @type {any} */ (hooks).useRef);
