// @ts-check
// Numbers, times and foreign text in words.

/** @param {number} dollars @param {boolean} [atLeast] */
export function money(dollars, atLeast = false) {
  const n = Number(dollars) || 0;
  if (n === 0) return `${atLeast ? '≥ ' : ''}$0`;
  const digits = n !== 0 && Math.abs(n) < 0.01 ? 4 : n < 1 ? 3 : 2;
  return `${atLeast ? '≥ ' : ''}$${n.toFixed(digits)}`;
}

/**
 * Spending in a word. An estimate is shown apart from the recorded cost.
 * @param {{cost?: number, unpriced_calls?: number} | undefined} spending @param {number} [estimate]
 */
export function spent(spending, estimate) {
  if (!spending) return '';
  if (estimate) return `${spending.cost ? `${money(spending.cost)} + ` : ''}~${money(estimate)}`;
  return money(spending.cost ?? 0, (spending.unpriced_calls ?? 0) > 0);
}

/** @param {number} n */
export function count(n) {
  return (Number(n) || 0).toLocaleString('en-US');
}

/** A count that stays short. @param {number} n */
export function short(n) {
  if (n < 1000) return String(n);
  if (n < 1e6) return `${(n / 1e3).toFixed(n < 1e4 ? 1 : 0)}k`;
  return `${(n / 1e6).toFixed(1)}M`;
}

/** @param {number} n */
export function bytes(n) {
  if (n < 1024) return `${n} B`;
  if (n < 1 << 20) return `${(n / 1024).toFixed(1)} KB`;
  if (n < 1 << 30) return `${(n / (1 << 20)).toFixed(1)} MB`;
  return `${(n / (1 << 30)).toFixed(2)} GB`;
}

/** @param {{input?: number, output?: number} | undefined} usage */
export function tokens(usage) {
  return short((usage?.input ?? 0) + (usage?.output ?? 0));
}

/** @param {string | number} from @param {number} [now] */
export function age(from, now = Date.now()) {
  const seconds = Math.max(0, (now - new Date(from).getTime()) / 1000);
  if (seconds < 45) return 'just now';
  if (seconds < 3600) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.round(seconds / 3600)} h ago`;
  if (seconds < 86400 * 30) return `${Math.round(seconds / 86400)} d ago`;
  return new Date(from).toISOString().slice(0, 10);
}

/** @param {number} seconds */
export function duration(seconds) {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.round((seconds % 3600) / 60)} min`;
}

/** @param {string} at */
export function moment(at) {
  return new Date(at).toLocaleString();
}

/** @param {string} text @param {string} one */
export function plural(text, one) {
  return Number(text) === 1 ? `${text} ${one}` : `${text} ${one}s`;
}

/** A status or reason as words. @param {string | undefined} word */
export function words(word) {
  return (word ?? '').replaceAll('_', ' ');
}

// Colours and cursor moves of terminals. They contain only a few numbers, so removing them loses no text.
const COLOURS = /\u001b\[[0-9;:?]{0,32}[ -/]?[@-~]/g;
// Characters that could move or hide text: other control characters, and marks of direction.
const UNSEEN =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff]/g;

// Characters without a width of their own, even those with a legitimate use.
const ANY_UNSEEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u115f\u1160\u3164\uffa0]/gu;

/**
 * Foreign text made readable: without a terminal's colours, and with characters that could hide
 * something made visible.
 * @param {string} text
 */
export function plain(text) {
  return String(text).replace(COLOURS, '').replace(/\r\n?/g, '\n').replace(UNSEEN, visible);
}

/**
 * Text in an approval: every character is present and visible.
 * @param {string} text
 */
export function exact(text) {
  return String(text).replace(ANY_UNSEEN, visible);
}

/** @param {string} character */
function visible(character) {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`;
}

/** The first line of a text, not too long. @param {string} text @param {number} [most] */
export function firstLine(text, most = 160) {
  const line = plain(String(text).slice(0, most * 4))
    .trim()
    .split('\n')[0];
  return line.length > most ? `${line.slice(0, most)}…` : line;
}

/** A model's name without the folders of a script. @param {string} name */
export function modelName(name) {
  if (!name) return '';
  const parts = name.split('/');
  return name.includes('script:') || name.startsWith('/') ? `script ${parts[parts.length - 1]}` : name;
}

/**
 * Splits a text at places that are given in bytes.
 * @param {string} text @param {[number, number][]} matches
 * @returns {{text: string, hit: boolean}[]}
 */
export function highlight(text, matches) {
  const encoded = new TextEncoder().encode(text);
  const decoder = new TextDecoder();
  const parts = [];
  let at = 0;
  for (const [from, to] of matches) {
    if (from < at) continue;
    parts.push({ text: plain(decoder.decode(encoded.slice(at, from))), hit: false });
    parts.push({ text: plain(decoder.decode(encoded.slice(from, to))), hit: true });
    at = to;
  }
  parts.push({ text: plain(decoder.decode(encoded.slice(at))), hit: false });
  return parts.filter((part) => part.text);
}
