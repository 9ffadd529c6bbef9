import assert from "node:assert";

const load = (name) => import(`../lib/${name}.mjs`).catch((error) => assert.fail(`acceptance 1.3: ${error.message}`));
const { wrap } = await load("wrap");
assert.deepEqual(wrap("tea and a cake", 8), ["tea and", "a cake"], `acceptance 1.3: ${wrap("tea and a cake", 8)}`);
