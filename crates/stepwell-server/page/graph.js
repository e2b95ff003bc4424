// @ts-check
// A flow as a graph: its nodes in layers, with their states.
import { html } from './html.js';

/** @typedef {{key: string, agent?: string | null, state: string, error?: string, answer?: string}} Node */

const [WIDTH, HEIGHT, GAP_X, GAP_Y] = [150, 44, 36, 14];

/** Which layer each node is in: one behind the last of those before it. @param {string[]} keys @param {{from: string, to: string}[]} edges */
export function layers(keys, edges) {
  /** @type {Map<string, number>} */ const layer = new Map(keys.map((key) => [key, 0]));
  // A cycle would loop for ever, so there are at most as many rounds as nodes.
  for (let round = 0; round < keys.length; round += 1) {
    let moved = false;
    for (const { from, to } of edges) {
      const [before, now] = [layer.get(from), layer.get(to)];
      if (before === undefined || now === undefined || from === to) continue;
      if (keys.indexOf(from) < keys.indexOf(to) && now < before + 1) {
        layer.set(to, before + 1);
        moved = true;
      }
    }
    if (!moved) break;
  }
  return layer;
}

/**
 * Nodes and edges of a session's flow. Without a plan, nodes follow each other as they began, and
 * those of a branch are beside each other.
 * @param {any} flow @param {any} plan
 * @returns {{nodes: Node[], edges: {from: string, to: string, when?: string}[]}}
 */
export function graphOf(flow, plan) {
  /** @type {Map<string, any>} */ const stands = new Map(flow.nodes.map((/** @type {any} */ node) => [node.key, node]));
  if (plan?.nodes?.length) {
    const nodes = plan.nodes.map((/** @type {any} */ node) => {
      const isLike = (/** @type {string} */ key) =>
        key === node.key ||
        (node.key.includes('*') &&
          new RegExp(
            `^${node.key
              .split('*')
              .map((/** @type {string} */ it) => it.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
              .join('.*')}$`,
          ).test(key));
      const mine = [...stands.values()].filter((it) => isLike(it.key));
      const last = mine[mine.length - 1];
      return {
        key: node.key,
        agent: node.agent,
        state: last?.state ?? 'waiting',
        error: last?.error,
        answer: last?.answer,
      };
    });
    return { nodes, edges: plan.edges };
  }
  const nodes = flow.nodes;
  const group = (/** @type {string} */ key) => key.split('/').slice(0, -1).join('/');
  /** @type {{from: string, to: string}[]} */ const edges = [];
  nodes.forEach((/** @type {any} */ node, /** @type {number} */ n) => {
    const before = nodes.slice(0, n).filter((/** @type {any} */ it) => group(it.key) === group(node.key));
    const last = before[before.length - 1] ?? (flow.pattern === 'parallel' ? null : nodes[n - 1]);
    if (last) edges.push({ from: last.key, to: node.key });
  });
  return { nodes, edges };
}

/** @param {{flow: any, plan?: any, onPick?: (node: Node) => void}} props */
export function FlowGraph({ flow, plan, onPick }) {
  const { nodes, edges } = graphOf(flow, plan);
  if (!nodes.length) return html`<p class="dim">No node has begun.</p>`;
  const layer = layers(
    nodes.map((node) => node.key),
    edges,
  );
  /** @type {Map<number, number>} */ const filled = new Map();
  /** @type {Map<string, {x: number, y: number}>} */ const places = new Map();
  for (const node of nodes) {
    const column = layer.get(node.key) ?? 0;
    const row = filled.get(column) ?? 0;
    filled.set(column, row + 1);
    places.set(node.key, { x: 6 + row * (WIDTH + GAP_Y), y: 6 + column * (HEIGHT + GAP_X) });
  }
  const width = Math.max(...filled.values()) * (WIDTH + GAP_Y) + 12;
  const height = (Math.max(...layer.values()) + 1) * (HEIGHT + GAP_X) - GAP_X + 12;
  return html`<div class="scroll-x graph-frame" tabindex="0" role="region" aria-label="Flow">
    <svg class="graph" width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`} role="group"
      aria-label=${`Flow ${flow.name}: ${nodes.length} nodes`}>
      <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
        <path d="M0 0 8 4 0 8z" /></marker></defs>
      ${edges.map(({ from, to, when }) => edge(places.get(from), places.get(to), when))}
      ${nodes.map((node) => drawn(node, places.get(node.key), onPick))}
    </svg></div>`;
}

/** @param {{x: number, y: number} | undefined} from @param {{x: number, y: number} | undefined} to @param {string} [when] */
function edge(from, to, when) {
  if (!from || !to) return null;
  const [x1, y1, x2] = [from.x + WIDTH / 2, from.y + HEIGHT, to.x + WIDTH / 2];
  const isBack = to.y <= from.y;
  const path = isBack
    ? `M${from.x + WIDTH} ${from.y + HEIGHT / 2} C${from.x + WIDTH + 24} ${from.y + HEIGHT / 2} ${to.x + WIDTH + 24} ${to.y + HEIGHT / 2} ${to.x + WIDTH} ${to.y + HEIGHT / 2}`
    : `M${x1} ${y1} C${x1} ${y1 + GAP_X / 2} ${x2} ${to.y - GAP_X / 2} ${x2} ${to.y - 2}`;
  return html`<path class="edge" d=${path} marker-end="url(#arrow)">${when && html`<title>${when}</title>`}</path>`;
}

/** @param {Node} node @param {{x: number, y: number} | undefined} place @param {((node: Node) => void) | undefined} onPick */
function drawn(node, place, onPick) {
  if (!place) return null;
  const second = node.agent ? `${node.agent} · ${node.state}` : node.state;
  const pick = () => onPick?.(node);
  const name = node.key.length > 19 ? `${node.key.slice(0, 18)}…` : node.key;
  return html`<g class=${`node ${node.state}`} transform=${`translate(${place.x} ${place.y})`} tabindex="0"
    role="button"
      onClick=${pick} onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === 'Enter' && pick()}>
    <rect width=${WIDTH} height=${HEIGHT} rx="7" />
    <text x="10" y="18">${name} </text>
    <text class="state" x="10" y="34">${second}</text>
  </g>`;
}
