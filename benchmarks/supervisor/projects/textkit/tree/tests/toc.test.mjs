//@ 2.2
import assert from "node:assert";
import test from "node:test";

import { toc } from "../lib/toc.mjs";

test("headings are indented by level", () => assert.equal(toc("# A\n## B c"), "- [A](#a)\n  - [B c](#b-c)"));
//@ end
