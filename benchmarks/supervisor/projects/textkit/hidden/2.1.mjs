import assert from "node:assert";

const load = (name) => import(`file://${process.cwd()}/lib/${name}.mjs`);
const { locate } = await load("words");
assert.deepEqual(locate("abc\ndef\nxx ghi", "ghi"), { line: 3, column: 4 });
assert.deepEqual(locate("ghi", "ghi"), { line: 1, column: 1 });
assert.equal(locate("abc\ndef", "ghi"), null);
