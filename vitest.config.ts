import { defineConfig } from "vitest/config";

/** Where to write the numbers of the run as JSON; CI reads them for its last line. */
const report = process.env.AGSTATE_TEST_REPORT;

/** Tests of PostgreSQL alone; the server is started when one of them is to run. */
const POSTGRES = "test/**/*.postgres.test.ts";

/** Tests that run on every backend. */
const EVERYWHERE = [
  "test/unit/{audit,audit-verify,branch,complete,discard,erase,erase-records,gc,governance,granularity,handoff,holds,isolation,lease,merging,operations,pending,resume-point,retention,reviews,revisions,speculate,steps,store,step-log,state-migrations,stored-merges,told-errors,watch,workflow}.test.ts",
  "test/property/{merge-crossing,merge-histories,store-model}.test.ts",
  "test/e2e/cases-{governance,merge,refs,steps,text,values}.test.ts",
  "test/e2e/merge-real-data.test.ts",
  "test/e2e/cases-space.test.ts",
  "test/keys/{changes,subjects,workflow}.test.ts",
  "test/pressure/guard.test.ts",
  "test/fault/{erase-kill,gc-beside-writers,retention-beside-writers}.test.ts",
  "test/oracle/merge-export.test.ts",
  "test/tracing/{leaks,spans,verify-trace}.test.ts",
  "test/langgraph/{commits,crash,delta,delta-graph,erase,graph,list,saver,validation}.test.ts",
];

// LangGraph's suite for checkpointers expects vitest's functions as globals.
const shared = {
  globals: true,
  testTimeout: 300_000,
  hookTimeout: 120_000,
  pool: "forks",
} as const;

/**
 * Tests that leave nothing in their process: files of these run one after another in two processes that
 * stay. Loading the library anew would take longer than most of them.
 *
 * Not here: what starts processes, registers a tracer or watches memory, and hooks of test/support, which are
 * those of the first file alone.
 */
const FOLDERS = ["conformance", "keys", "oracle", "property", "residency", "staleness", "unit"];
const TOGETHER = FOLDERS.map((name) => `test/${name}/**/*.test.ts`);
const POSTGRES_TOGETHER = FOLDERS.map((name) => `test/${name}/**/*.postgres.test.ts`);
const isTogether = (path: string) => FOLDERS.includes(path.split("/")[1] as string);

const postgres = {
  ...shared,
  env: { AGSTATE_TEST_BACKENDS: "postgres" },
  globalSetup: "test/support/postgres-server.ts",
};

export default defineConfig({
  test: {
    // Some tests start a handful of processes of their own.
    maxWorkers: 2,
    reporters: report ? ["default", ["json", { outputFile: report }]] : ["default"],
    projects: [
      {
        test: {
          ...shared,
          name: "embedded",
          include: ["test/**/*.test.ts"],
          exclude: [POSTGRES, ...TOGETHER],
        },
      },
      {
        test: {
          ...shared,
          name: "embedded-together",
          isolate: false,
          include: TOGETHER,
          exclude: [POSTGRES],
        },
      },
      {
        test: {
          ...postgres,
          name: "postgres",
          include: [POSTGRES, ...EVERYWHERE.filter((path) => !isTogether(path))],
          exclude: POSTGRES_TOGETHER,
        },
      },
      {
        test: {
          ...postgres,
          name: "postgres-together",
          isolate: false,
          include: [...POSTGRES_TOGETHER, ...EVERYWHERE.filter(isTogether)],
        },
      },
    ],
  },
});
