import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [react()],
  // The server puts the nonce of each response in the place of this mark (handler.go).
  html: { cspNonce: "__CSP_NONCE__" },
  build: {
    target: "es2023",
    // Data URLs in style sheets would need an exception in the content policy.
    assetsInlineLimit: 0,
    sourcemap: false,
    // What scripts/check-size.mjs reads and removes.
    manifest: true,
    // dist/.gitkeep is committed: Go embeds the folder before the first build.
    emptyOutDir: false,
  },
  server: {
    port: 5173,
    proxy: { "/api": "http://127.0.0.1:8080" },
  },
  test: {
    environment: "happy-dom",
    include: ["src/**/*.test.{ts,tsx}"],
    setupFiles: ["src/test/setup.ts"],
    restoreMocks: true,
    testTimeout: 20_000,
    // Times in tests are the same on every machine.
    env: { TZ: "Europe/Berlin" },
  },
});
