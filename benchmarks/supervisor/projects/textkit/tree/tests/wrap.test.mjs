//@ 1.3
import assert from "node:assert";
import test from "node:test";

import { wrap } from "../lib/wrap.mjs";

test("lines break at blanks", () => assert.deepEqual(wrap("tea and cake", 8), ["tea and", "cake"]));
//@ end
