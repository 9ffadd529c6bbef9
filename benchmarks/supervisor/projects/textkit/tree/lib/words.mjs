//@ 1.1
export function words(text) {
  return [...text.matchAll(/"([^"]*)"|(\S+)/g)].map((match) => match[1] ?? match[2]);
}
//@ half
export function words(text) {
  return text.split(/[\s"]+/).filter(Boolean);
}
//@ before
export function words(text) {
  return text.split(/\s+/).filter(Boolean);
}
//@ end

//@ 0
export function lines(text) {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}
//@ half
export function lines(text) {
  return text.split("\n");
}
//@ end
//@ 2.1

export function locate(text, word) {
  const rows = lines(text);
  for (let row = 0; row < rows.length; row += 1) {
    const column = rows[row].indexOf(word);
    if (column >= 0) return { line: row + 1, column: column + 1 };
  }
  return null;
}
//@ half

export function locate(text, word) {
  return { line: 1, column: text.indexOf(word) + 1 };
}
//@ end
