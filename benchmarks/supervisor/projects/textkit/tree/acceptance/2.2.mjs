import assert from "node:assert";

const load = (name) => import(`../lib/${name}.mjs`).catch((error) => assert.fail(`acceptance 2.2: ${error.message}`));
const { toc } = await load("toc");
assert.equal(toc("# A\n\ntext\n## B c\n"), "- [A](#a)\n  - [B c](#b-c)", "acceptance 2.2: wrong contents");
