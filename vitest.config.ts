import { defineConfig } from "vitest/config";

/** Where to write the numbers of the run as JSON; CI reads them for its last line. */
const report = process.env.AGSTATE_TEST_REPORT;

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    testTimeout: 300_000,
    hookTimeout: 120_000,
    pool: "forks",
    // Some tests start a handful of processes of their own.
    maxWorkers: 2,
    reporters: report ? ["default", ["json", { outputFile: report }]] : ["default"],
  },
});
