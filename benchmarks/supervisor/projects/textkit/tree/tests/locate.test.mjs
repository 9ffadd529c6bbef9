//@ 2.1
import assert from "node:assert";
import test from "node:test";

import { locate } from "../lib/words.mjs";

test("a word is found on its line", () => assert.deepEqual(locate("a\nb tea", "tea"), { line: 2, column: 3 }));
//@ end
