import assert from "node:assert";

const load = (name) => import(`file://${process.cwd()}/lib/${name}.mjs`);
const { slug } = await load("slug");
assert.deepEqual(["A--B", "?x?", "C 3 P O"].map(slug), ["a-b", "x", "c-3-p-o"]);
