import assert from "node:assert";

const load = (name) => import(`../lib/${name}.mjs`).catch((error) => assert.fail(`acceptance 1.1: ${error.message}`));
const { words } = await load("words");
assert.deepEqual(words('a "b c" d'), ["a", "b c", "d"], `acceptance 1.1: ${JSON.stringify(words('a "b c" d'))}`);
