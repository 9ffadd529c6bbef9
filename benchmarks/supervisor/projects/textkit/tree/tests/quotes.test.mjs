//@ 1.1
import assert from "node:assert";
import test from "node:test";

import { words } from "../lib/words.mjs";

test("quoted words stay together", () => assert.deepEqual(words('a "b c"'), ["a", "b c"]));
//@ end
