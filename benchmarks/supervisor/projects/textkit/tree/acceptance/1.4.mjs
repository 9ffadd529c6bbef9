import assert from "node:assert";

const load = (name) => import(`../lib/${name}.mjs`).catch((error) => assert.fail(`acceptance 1.4: ${error.message}`));
const { count } = await load("count");
assert.deepEqual([...count("b a A c")], [["a", 2], ["b", 1], ["c", 1]], "acceptance 1.4: wrong order or case");
