/**
 * An agent of the demo that books one thing for the release: asks a model which, and books it. It may be
 * killed at any instant and started again with the same words.
 *
 *     node booker.mjs STORE WORKFLOW SERVICE THING
 */
import { idempotentFetch, openStore } from "agstate";

const [url, workflowId, service, thing] = process.argv.slice(2);
const store = await openStore(url, { create: false });
const workflow = await store.workflow(workflowId);
const branch = await workflow.branch({ agent: thing, branch: "release", from: "canonical" });

const post = async (call, path, body) => {
  const init = { method: "POST", body: JSON.stringify(body) };
  return (await idempotentFetch(call, `${service}${path}`, init)).json();
};

const booking = await workflow.run(branch, async (ctx) => {
  const question = `which ${thing}`;
  const choice = await ctx.step({ name: "choose", action: "inference", input: question }, (call) =>
    post(call, "/answers", { question }),
  );
  const what = `${thing}: ${choice.answer}`;
  return ctx.step(
    {
      name: "book",
      action: "write",
      input: what,
      // The service knows the key, so asking again is safe.
      inDoubt: "retry",
      update: (booked) => [{ op: "set", path: `/bookings/${thing}`, value: booked }],
    },
    (call) => post(call, "/bookings", { what }),
  );
});
await store.close();
console.log(`agent ${thing} has booking ${booking.number}: ${booking.booked}`);
