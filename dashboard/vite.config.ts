import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const BUILT = "../src/holdfast/server/static";
/** Bytes below which compressing saves next to nothing. */
const SMALL = 500;

const SHARED =
  /vite\/preload-helper|rolldown\/runtime|node_modules\/(react|react-dom|scheduler|wouter|regexparam|mitt|use-sync-external-store|@tanstack\/(query-core|react-query))\/|src\/(api|live)\/(?!use-output)|src\/lib\/(format|part|paths|use-param|use-title)\.|src\/parts\/(bits|states|toasts|SessionUsage)\./;

/** Each file a second and third time, compressed, for the server to send as it is. */
const compressed = {
  name: "compressed",
  apply: "build" as const,
  closeBundle() {
    for (const name of readdirSync(BUILT, { recursive: true, encoding: "utf8" })) {
      if (!/\.(js|css|html|svg)$/.test(name)) continue;
      const path = join(BUILT, name);
      const content = readFileSync(path);
      if (content.length < SMALL) continue;
      writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }));
      writeFileSync(`${path}.br`, brotliCompressSync(content));
    }
  },
};

export default defineConfig({
  plugins: [react(), compressed],
  build: {
    outDir: BUILT,
    emptyOutDir: true,
    // Nothing inline: the server's content security policy lets in only files of its own.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 300,
    // What every page needs is one file: a dozen small ones cost a dozen times the headers of an answer.
    rollupOptions: { output: { codeSplitting: { groups: [{ name: "shared", test: SHARED }] } } },
  },
  server: {
    // `npm run dev` beside `holdfast serve`: open its link once with this port in place of 8421.
    proxy: {
      "/api": { target: "http://127.0.0.1:8421" },
      "/ws": { target: "ws://127.0.0.1:8421", ws: true },
    },
  },
  test: { include: ["tests/**/*.test.{ts,tsx}"], environment: "node" },
});
