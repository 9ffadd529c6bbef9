import assert from "node:assert";

const load = (name) => import(`file://${process.cwd()}/lib/${name}.mjs`);
const { lines, words } = await load("words");
assert.deepEqual(words("one  two\tthree\n"), ["one", "two", "three"]);
assert.deepEqual(lines("x\n\ny\n"), ["x", "", "y"]);
assert.deepEqual(lines(""), []);
