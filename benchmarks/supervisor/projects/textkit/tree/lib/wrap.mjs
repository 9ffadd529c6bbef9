//@ 1.3
export function wrap(text, width) {
  const rows = [];
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const last = rows.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width) rows[rows.length - 1] = `${last} ${word}`;
    else rows.push(word);
  }
  return rows;
}
//@ half
export function wrap(text, width) {
  const rows = [];
  for (let at = 0; at < text.length; at += width) rows.push(text.slice(at, at + width));
  return rows;
}
//@ end
