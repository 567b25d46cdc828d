// Fails the build when the first load would fetch more JavaScript than agreed.
// Also removes bundles of earlier builds, which Go would embed as well.
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { gzipSync } from "node:zlib";

const limit = 300 * 1024;
const folder = new URL("../dist/assets/", import.meta.url);
const index = readFileSync(new URL("../dist/index.html", import.meta.url), "utf8");

const files = readdirSync(folder);
const texts = new Map(
  files
    .filter((f) => /\.(js|css)$/.test(f))
    .map((f) => [f, readFileSync(new URL(f, folder), "utf8")]),
);

/** Everything that index.html leads to, directly or through another file. */
function reachable() {
  const seen = new Set();
  const queue = [index];
  while (queue.length > 0) {
    const text = queue.pop();
    for (const file of files) {
      if (!seen.has(file) && text.includes(file)) {
        seen.add(file);
        queue.push(texts.get(file) ?? "");
      }
    }
  }
  return seen;
}

const live = reachable();
for (const file of files) {
  if (!live.has(file)) rmSync(new URL(file, folder));
}

let size = 0;
for (const file of live) {
  if (file.endsWith(".js")) size += gzipSync(texts.get(file)).length;
}
const report = `console: ${(size / 1024).toFixed(1)} KiB of compressed JavaScript, ${limit / 1024} allowed`;
if (size > limit) {
  process.stderr.write(`${report}\n`);
  process.exit(1);
}
process.stdout.write(`${report}\n`);
