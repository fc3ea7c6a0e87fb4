// Builds the page: `node build.mjs [DIRECTORY]`, by default into the Python package. The same sources give the same bytes.
import { build } from "esbuild";
import { copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = resolve(process.argv[2] ?? join(here, "../src/ostinato/page/assets"));

// xterm writes <style> elements, which the page's Content-Security-Policy refuses. In their place it gets <adopted-style>,
// our element that adopts the same text as a constructed style sheet (src/parts/adopted_style.ts).
const STYLE_ELEMENTS = 3;
const adoptedStyles = {
  name: "adopted-styles",
  setup(builder) {
    builder.onLoad({ filter: /@xterm\/xterm\/lib\/xterm\.mjs$/ }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      const parts = text.split('.createElement("style")');
      if (parts.length - 1 !== STYLE_ELEMENTS) {
        throw new Error(`xterm creates ${parts.length - 1} style elements, not ${STYLE_ELEMENTS}; review the replacement`);
      }
      return { contents: parts.join('.createElement("adopted-style")'), loader: "js" };
    });
  },
};

async function licenses(packages) {
  const texts = await Promise.all(
    packages.map(async (name) => {
      const { version } = JSON.parse(await readFile(join(here, "node_modules", name, "package.json"), "utf8"));
      return `${name} ${version}\n\n${(await readFile(join(here, "node_modules", name, "LICENSE"), "utf8")).trim()}\n`;
    }),
  );
  return texts.join(`\n${"-".repeat(80)}\n\n`);
}

await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
await build({
  absWorkingDir: here,
  entryPoints: { app: "src/main.tsx" },
  outdir: out,
  bundle: true,
  splitting: true,
  chunkNames: "[name]",
  format: "esm",
  target: ["chrome111", "firefox113", "safari16.4"],
  jsx: "automatic",
  jsxImportSource: "preact",
  minify: true,
  legalComments: "none",
  charset: "utf8",
  plugins: [adoptedStyles],
  logLevel: "warning",
});
for (const file of ["index.html", "icon.svg"]) await copyFile(join(here, "src", file), join(out, file));
const { dependencies } = JSON.parse(await readFile(join(here, "package.json"), "utf8"));
await writeFile(join(out, "LICENSES.txt"), await licenses([...Object.keys(dependencies), "@preact/signals-core"]));
