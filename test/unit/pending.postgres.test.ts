import { expect, it } from "vitest";
import { queries } from "../../src/storage/postgres/queries.js";
import { WorkflowKeys } from "../../src/storage/postgres/workflow-keys.js";
import { digest } from "../../src/testing/index.js";
import { schemaOf, withClient } from "../support/postgres.js";
import { makeStore } from "../support/stores.js";

interface Plan {
  readonly "Relation Name"?: string;
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
  readonly Plans?: readonly Plan[];
}

/** How many rows of a table a plan looked at. */
function rowsOf(plan: Plan, table: string): number {
  const own = plan["Actual Rows"] + (plan["Rows Removed by Filter"] ?? 0);
  const here = plan["Relation Name"] === table ? own * plan["Actual Loops"] : 0;
  return (plan.Plans ?? []).reduce((sum, inner) => sum + rowsOf(inner, table), here);
}

it("reads of the pending rows of a workflow those that it is asked for, also without statistics", async () => {
  const { store, url } = await makeStore("postgres");
  await store.createWorkflow("w");
  const key = new WorkflowKeys(digest).of("w");
  const schema = schemaOf(url);
  await withClient(async (client) => {
    await client.query(
      `INSERT INTO ${schema}.pending (workflow_id, idx, key, body)
        SELECT $1, 0, 'a/' || i || '/task', '' FROM generate_series(1, 5000) AS i`,
      [key],
    );
    const prefixes = Array.from({ length: 100 }, (_, i) => `a/${i + 1}/`);
    const explain = `EXPLAIN (ANALYZE, FORMAT JSON) ${queries(schema).pending}`;
    const { rows } = await client.query(explain, [key, prefixes]);
    const [{ Plan: plan }] = rows[0]["QUERY PLAN"] as [{ Plan: Plan }];
    expect(plan["Actual Rows"]).toBe(100);
    expect(rowsOf(plan, "pending")).toBeLessThanOrEqual(200);
  });
});
