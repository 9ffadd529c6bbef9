import assert from "node:assert";

const load = (name) => import(`file://${process.cwd()}/lib/${name}.mjs`);
const { words } = await load("words");
assert.deepEqual(words('"x y" z "" w'), ["x y", "z", "", "w"]);
