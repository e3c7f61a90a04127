import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

/** Pages are also opened from a file, where module scripts may not be loaded: one classic script does everywhere. */
function classicScript(): Plugin {
  return {
    name: "classic-script",
    enforce: "post",
    transformIndexHtml: (html) => html.replace(/<script type="module" crossorigin/g, "<script defer").replace(/ crossorigin/g, ""),
  };
}

export default defineConfig({
  base: "./",
  plugins: [react(), classicScript()],
  build: {
    outDir: "../src/weakspot/web/built",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: false,
    cssCodeSplit: false,
    license: { fileName: "licences.md" },
    rolldownOptions: { output: { format: "iife" } },
    chunkSizeWarningLimit: 1500,
  },
  test: { environment: "node", include: ["src/**/*.test.{ts,tsx}"] },
} as Parameters<typeof defineConfig>[0]);
