import assert from "node:assert";
import test from "node:test";

import { lines, words } from "../lib/words.mjs";

test("words are split at blanks", () => assert.deepEqual(words(" a  b\nc "), ["a", "b", "c"]));
test("a last line end begins no line", () => assert.deepEqual(lines("a\nb\n"), ["a", "b"]));
