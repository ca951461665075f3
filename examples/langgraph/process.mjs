/**
 * One process of the example: runs the refund graph until it waits for a person, or gives it a person's
 * answer, and ends. What the next process needs to know is in the store.
 *
 *     node process.mjs STORE THREAD begin REQUEST
 *     node process.mjs STORE THREAD answer yes|no WHO
 */
import { Command, INTERRUPT, isInterrupted } from "@langchain/langgraph";
import { AgstateSaver } from "agstate/langgraph";
import { refundGraph } from "./refund.mjs";

const [url, thread, what, text, by] = process.argv.slice(2);
const checkpointer = AgstateSaver.fromConnString(url);
const graph = refundGraph(checkpointer);
const input =
  what === "begin" ? { request: text } : new Command({ resume: { may: text === "yes", by } });
const result = await graph.invoke(input, { configurable: { thread_id: thread } });
for (const note of result.notes) console.log(`  ${note}`);
if (isInterrupted(result)) {
  const [{ value }] = result[INTERRUPT];
  console.log(`  waits: ${value.question} ${JSON.stringify(value.offer)}`);
}
await checkpointer.end();
