import assert from "node:assert";

const load = (name) => import(`../lib/${name}.mjs`).catch((error) => assert.fail(`acceptance 1.2: ${error.message}`));
const { slug } = await load("slug");
assert.equal(slug("  Tea & Cake, 2 pieces!"), "tea-cake-2-pieces", `acceptance 1.2: ${slug("  Tea & Cake, 2 pieces!")}`);
