//@ 2.2
import { slug } from "./slug.mjs";

export function toc(markdown) {
  return [...markdown.matchAll(/^(#+) +(.+)$/gm)]
    .map(([, level, title]) => `${"  ".repeat(level.length - 1)}- [${title}](#${slug(title)})`)
    .join("\n");
}
//@ half
import { slug } from "./slug.mjs";

export function toc(markdown) {
  return [...markdown.matchAll(/^# +(.+)$/gm)].map(([, title]) => `- [${title}](#${slug(title)})`).join("\n");
}
//@ end
