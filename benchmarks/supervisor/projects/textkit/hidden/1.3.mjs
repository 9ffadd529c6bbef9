import assert from "node:assert";

const load = (name) => import(`file://${process.cwd()}/lib/${name}.mjs`);
const { wrap } = await load("wrap");
assert.deepEqual(wrap("extraordinary is long", 7), ["extraordinary", "is long"]);
assert.deepEqual(wrap("", 5), []);
