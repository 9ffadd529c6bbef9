import assert from "node:assert";

const load = (name) => import(`../lib/${name}.mjs`).catch((error) => assert.fail(`acceptance 2.1: ${error.message}`));
const { locate } = await load("words");
assert.ok(locate, "acceptance 2.1: there is no locate()");
assert.deepEqual(locate("a\nb tea", "tea"), { line: 2, column: 3 }, "acceptance 2.1: wrong place");
assert.equal(locate("a", "tea"), null, "acceptance 2.1: found what is not there");
