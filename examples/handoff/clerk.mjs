/**
 * A clerk, on the evening or the morning shift.
 *
 *     node clerk.mjs STORE RULES CHECKERS evening|morning
 */
import { createCheckers, idempotentFetch, openStore, readCheckersFile } from "agstate";

const [url, rulesUrl, file, shift] = process.argv.slice(2);
/** What a clerk works with; that the evening's code was another is seen in the morning. */
const fingerprints = {
  code: shift === "evening" ? "1.0.0" : "1.1.0",
  tools: [{ name: "refund", schema: { type: "object" } }],
};
const checkers = createCheckers(await readCheckersFile(file, process.env));
const store = await openStore(url, { create: false, checkers });
const workflow = await store.workflow("refunds");
const branch = await workflow.branch({ agent: "clerk", branch: "refunds" });

/** Decides on orders by the rules, as they are when the shift begins; what was read is on record with the step. */
const work = (orders) => async (ctx) => {
  const rules = await ctx.step(
    { name: "read the rules", action: "read", memoize: true },
    async (call) => (await idempotentFetch(call, rulesUrl)).text(),
  );
  const limit = Number(/up to (\d+)/.exec(rules)[1]);
  for (const order of orders) {
    const said = await branch.state(`/orders/${order}`);
    const amount = Number(/\d+$/.exec(said)[0]);
    const refund = said.startsWith("broken") ? Math.min(amount, limit) : 0;
    await ctx.step(
      {
        name: `refund ${order}`,
        action: "write",
        input: { order, refund },
        update: () => [{ op: "set", path: `/refunded/${order}`, value: refund }],
      },
      () => ({ paid: refund }),
    );
    console.log(`${order} (${said}): ${refund} refunded, at most ${limit}`);
  }
};

try {
  if (shift === "evening") {
    await workflow.run(branch, work(["A1"]), { id: shift });
    const { tag } = await branch.handoff({
      summary: {
        goal: "Refund the orders of May",
        done: ["A1 is refunded"],
        open: ["B2", "C3"],
        decisions: ["What came too late is not refunded"],
        next: "Go on with B2",
      },
      fingerprints,
      author: "evening-clerk",
    });
    console.log(`handed off at ${tag}`);
  } else {
    const author = "morning-clerk";
    const report = await branch.resume({ author, fingerprints });
    const { ready, verdict, resources, drift, review } = report;
    const stale = resources.filter(({ found }) => found !== "same");
    for (const { resource, now } of stale) {
      console.log(`${verdict}: the rules were ${resource.version}, and are ${now}`);
    }
    for (const { kind, recorded, now } of drift)
      console.log(`${kind} was ${recorded}, and is ${now}`);
    if (ready) await workflow.run(branch, work(["B2", "C3"]), { id: shift });
    else {
      console.log(`nothing was done; ${review.id} waits for somebody`);
      process.exitCode = 1;
    }
  }
} finally {
  await store.close();
}
