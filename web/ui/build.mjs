// Builds the page into the package. `node build.mjs [FOLDER]`: the bundle, and a mark by which a test without Node
// sees whether it was built from these sources.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "../../src/unstuck/catalog/ui");

const sources = ["package.json", "build.mjs", ...readdirSync(join(here, "src")).map((name) => `src/${name}`)].sort();
const mark = createHash("sha256");
for (const name of sources) mark.update(`${name}\0`).update(readFileSync(join(here, name))).update("\0");
const banner = `/* Built by \`make ui\` from web/ui. sources:${mark.digest("hex")} */`;

mkdirSync(out, { recursive: true });
const made = await build({
  entryPoints: [join(here, "src/ui.jsx"), join(here, "src/ui.css")],
  outdir: out,
  bundle: true,
  minify: true,
  write: false,
  charset: "utf8",
  format: "iife",
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
});
for (const file of made.outputFiles) writeFileSync(file.path, `${banner}\n${file.text}`);
