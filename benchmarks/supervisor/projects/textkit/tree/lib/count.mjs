//@ 1.4
import { words } from "./words.mjs";

export function count(text) {
  const counts = new Map();
  for (const word of words(text.toLowerCase())) counts.set(word, (counts.get(word) ?? 0) + 1);
  return new Map([...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)));
}
//@ half
import { words } from "./words.mjs";

export function count(text) {
  const counts = new Map();
  for (const word of words(text)) counts.set(word, (counts.get(word) ?? 0) + 1);
  return counts;
}
//@ end
