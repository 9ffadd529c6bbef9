//@ 1.2
import assert from "node:assert";
import test from "node:test";

import { slug } from "../lib/slug.mjs";

test("a slug has one hyphen between words", () => assert.equal(slug("Tea & Cake!"), "tea-cake"));
//@ end
