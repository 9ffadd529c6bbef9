//@ 1.4
import assert from "node:assert";
import test from "node:test";

import { count } from "../lib/count.mjs";

test("the most frequent word comes first", () => assert.deepEqual([...count("b a A")], [["a", 2], ["b", 1]]));
//@ end
