//@ 1.2
export function slug(text) {
  return text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
}
//@ half
export function slug(text) {
  return text.toLowerCase().replace(/ /g, "-");
}
//@ end
