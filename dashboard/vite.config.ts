import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "../src/holdfast/server/static",
    emptyOutDir: true,
    // Nothing inline: the server's content security policy lets in only files of its own.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 300,
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
