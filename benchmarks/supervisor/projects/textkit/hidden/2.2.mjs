import assert from "node:assert";

const load = (name) => import(`file://${process.cwd()}/lib/${name}.mjs`);
const { toc } = await load("toc");
assert.equal(toc("# One\n### Deep down!\n# Two"), "- [One](#one)\n    - [Deep down!](#deep-down)\n- [Two](#two)");
