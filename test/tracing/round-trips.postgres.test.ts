import { SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { describe, expect, it } from "vitest";
import { openStore, type Store } from "../../src/index.js";
import { newSchema, schemaOf, withClient } from "../support/postgres.js";
import { agstateError } from "../support/stores.js";
import { parentOf, tellOpenTelemetry } from "../support/tracing.js";

const AGENTS = 20;

async function withStore(
  limits: { poolMax: number },
  work: (store: Store, url: string) => Promise<void>,
): Promise<void> {
  const { url, drop } = newSchema();
  const store = await openStore(url, { limits: { ...limits, busyTimeoutMs: 2000 } });
  try {
    await work(store, url);
  } finally {
    await store.close();
    await drop();
  }
}

describe("round trips to PostgreSQL", () => {
  it.each([1, 2, 5])(
    "stand below whoever asked, with %i connections for all (TRC-01)",
    async (poolMax) => {
      await withStore({ poolMax }, async (store) => {
        const workflow = await store.createWorkflow("w", { state: {} });
        const branches = await Promise.all(
          Array.from({ length: AGENTS }, (_, i) =>
            workflow.branch({ agent: `a${i}`, branch: "1" }),
          ),
        );
        const told = tellOpenTelemetry();
        const tracer = trace.getTracer("test");
        await Promise.all(
          branches.map((branch, i) =>
            tracer.startActiveSpan(`a${i}`, { root: true }, async (span) => {
              for (let n = 0; n < 3; n++) {
                await branch.commit({ state: { n } });
                await branch.refresh();
              }
              span.end();
            }),
          ),
        );
        const all = told.spans();
        const trips = all.filter(({ kind }) => kind === SpanKind.CLIENT);
        expect(trips.length).toBeGreaterThan(AGENTS);
        const agents = new Map(
          all
            .filter(({ name }) => /^a\d+$/.test(name))
            .map((s) => [s.spanContext().traceId, s.name]),
        );
        for (const trip of trips) {
          const parent = parentOf(trip, all);
          expect(parent).toBeDefined();
          if (!/^(append|write)_/.test(trip.name)) {
            expect(parent!.name).toBe(agents.get(trip.spanContext().traceId));
            continue;
          }
          expect(parent!.name).toBe("write_checkpoint");
          expect(parent!.attributes["agent.id"]).toBe(agents.get(trip.spanContext().traceId));
          const batch = trip.attributes["db.operation.batch.size"] ?? 1;
          expect(trip.links.length).toBe(batch === 1 ? 0 : batch);
        }
        expect(trips.some(({ links }) => links.length > 1)).toBe(true);
        // Each commit came with one of them, as its parent or by a link.
        const brought = new Set(
          trips.flatMap((trip) => [
            trip.parentSpanContext?.spanId,
            ...trip.links.map((link) => link.context.spanId),
          ]),
        );
        const commits = all.filter(({ name }) => name === "write_checkpoint");
        expect(commits.length).toBe(AGENTS * 3);
        for (const commit of commits) expect(brought.has(commit.spanContext().spanId)).toBe(true);
        expect(await told.sum("agstate.group.size")).toBe(AGENTS * 3);
        expect(await told.total("agstate.queue.depth")).toBe(0);
        const waits = await told.total("db.client.connection.wait_time");
        expect(waits).toBe(trips.length);
      });
    },
  );

  it("say where they went, by the conventions", async () => {
    await withStore({ poolMax: 2 }, async (store, url) => {
      const workflow = await store.createWorkflow("w", { state: {} });
      const branch = await workflow.branch({ agent: "a", branch: "1" });
      const told = tellOpenTelemetry();
      await branch.commit({ state: 1 });
      const trip = told
        .spans()
        .filter(({ kind }) => kind === SpanKind.CLIENT)
        .at(-1);
      const { hostname, port, pathname, searchParams } = new URL(url);
      const schema = searchParams.get("schema");
      expect(trip!.name).toBe(`append_commit ${schema}`);
      expect(trip!.attributes).toEqual({
        "db.system.name": "postgresql",
        "db.namespace": `${pathname.slice(1)}|${schema}`,
        "db.operation.name": "append_commit",
        "server.address": hostname,
        "server.port": Number(port),
      });
    });
  });

  it("say how they failed, each that was tried", async () => {
    await withStore({ poolMax: 2 }, async (store, url) => {
      const workflow = await store.createWorkflow("w", { state: {} });
      const branch = await workflow.branch({ agent: "a", branch: "1" });
      await withClient((client) => client.query(`DROP SCHEMA ${schemaOf(url)} CASCADE`));
      const told = tellOpenTelemetry();
      await expect(branch.commit({ state: 1 })).rejects.toEqual(agstateError("STORE_UNAVAILABLE"));
      const trips = told.spans().filter(({ kind }) => kind === SpanKind.CLIENT);
      expect(trips.length).toBeGreaterThan(0);
      for (const { status, attributes } of trips) {
        const code = attributes["db.response.status_code"];
        expect(code).toMatch(/^(3F000|42883|42P01)$/);
        expect(attributes["error.type"]).toBe(code);
        expect(status).toEqual({ code: SpanStatusCode.ERROR, message: code });
      }
      const [commit] = told.named("write_checkpoint");
      expect(commit!.attributes).toMatchObject({
        "checkpoint.success": false,
        "error.type": "STORE_UNAVAILABLE",
      });
      expect(
        await told.total("db.client.operation.duration", {
          "error.type": trips[0]!.attributes["error.type"],
        }),
      ).toBe(trips.length);
    });
  });
});
