// Fails the build when the first load would fetch more JavaScript than agreed:
// the entry with everything that it imports statically. Pages and charts that are
// loaded on demand are listed, not counted.
// Also removes bundles of earlier builds, which Go would embed as well.
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { gzipSync } from "node:zlib";

const limit = 300 * 1024;
const dist = new URL("../dist/", import.meta.url);
const folder = new URL("assets/", dist);
const manifestFile = new URL(".vite/manifest.json", dist);
const manifest = JSON.parse(readFileSync(manifestFile, "utf8"));
// The manifest is for this check alone; nothing of it is served.
rmSync(new URL(".vite", dist), { recursive: true });

const chunks = Object.values(manifest);
const entry = chunks.find((chunk) => chunk.isEntry);
if (!entry) throw new Error("the manifest names no entry");

/** A chunk with everything that its static imports bring along. */
function withImports(chunk, seen = new Set()) {
  if (seen.has(chunk)) return seen;
  seen.add(chunk);
  for (const key of chunk.imports ?? []) withImports(manifest[key], seen);
  return seen;
}

const files = (set) => [...set].flatMap((chunk) => [chunk.file, ...(chunk.css ?? [])]);
const live = new Set(
  chunks.flatMap((chunk) => [chunk.file, ...(chunk.css ?? []), ...(chunk.assets ?? [])]),
);
for (const file of readdirSync(folder)) {
  if (!live.has(`assets/${file}`)) rmSync(new URL(file, folder));
}

const size = (file) => gzipSync(readFileSync(new URL(file, dist))).length;
const scripts = (list) => list.filter((file) => file.endsWith(".js"));
const total = (list) => list.reduce((sum, file) => sum + size(file), 0);
const kib = (bytes) => `${(bytes / 1024).toFixed(1)} KiB`;

const first = new Set(scripts(files(withImports(entry))));
const lazy = chunks
  .filter((chunk) => chunk.isDynamicEntry)
  .map((chunk) => ({
    name: chunk.name,
    bytes: total(scripts(files(withImports(chunk))).filter((file) => !first.has(file))),
  }))
  .sort((a, b) => b.bytes - a.bytes);

const bytes = total([...first]);
const report = [
  `console: ${kib(bytes)} of compressed JavaScript on first load, ${limit / 1024} KiB allowed`,
  ...lazy.map((one) => `  on demand: ${kib(one.bytes)} ${one.name}`),
].join("\n");
if (bytes > limit) {
  process.stderr.write(`${report}\n`);
  process.exit(1);
}
process.stdout.write(`${report}\n`);
