import assert from "node:assert";

const load = (name) => import(`file://${process.cwd()}/lib/${name}.mjs`);
const { count } = await load("count");
assert.deepEqual([...count("Z y z Y x z")], [["z", 3], ["y", 2], ["x", 1]]);
