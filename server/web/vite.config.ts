import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// Development and preview forward the API to a running `covel serve`, or to `npm run mock`.
const api = process.env["COVEL_API"] ?? "http://127.0.0.1:8787";
const proxy = { "/api": { target: api, changeOrigin: false } };

export default defineConfig({
  plugins: [react()],
  server: { proxy },
  preview: { proxy },
  build: {
    // The page is embedded in the binary: no source maps, no inlined assets that a strict policy would refuse.
    sourcemap: false,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  test: {
    environment: "jsdom",
    include: ["src/**/*.test.{ts,tsx}"],
    restoreMocks: true,
  },
});
