/**
 * A graph of LangGraph that handles a request for a refund. Its nodes are plain functions; where a model
 * would be asked, a rule answers.
 *
 *     read -> assess -> ask (waits for a person) -> settle
 */
import { Annotation, END, interrupt, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({
  /** What the customer wrote. */
  request: Annotation(),
  /** What the shop knows of the order. */
  order: Annotation(),
  /** What the shop is going to offer. */
  offer: Annotation(),
  /** What a person said to the offer. */
  decision: Annotation(),
  /** What was said so far; each node adds its line. */
  notes: Annotation({ reducer: (before, added) => [...before, ...added], default: () => [] }),
});

/** What the shop has on record; a real graph would ask a service. */
const orders = { 1017: { item: "kettle", paid: 48, daysAgo: 41 } };

function read({ request }) {
  const order = orders[/\d+/.exec(request)[0]];
  return { order, notes: [`read: a ${order.item}, ${order.paid} paid, ${order.daysAgo} days ago`] };
}

function assess({ order }) {
  const offer = order.daysAgo <= 30 ? { pay: order.paid } : { pay: 0 };
  return { offer, notes: [`assess: bought ${order.daysAgo} days ago, so pay ${offer.pay}`] };
}

function ask({ offer }) {
  const decision = interrupt({ question: "May this offer be made?", offer });
  return { decision, notes: [`ask: ${decision.by} says ${decision.may ? "yes" : "no"}`] };
}

function settle({ offer, decision }) {
  if (!decision.may) return { notes: ["settle: nothing is paid"] };
  const what = offer.voucher ? `a voucher over ${offer.voucher}` : `${offer.pay} in money`;
  return { notes: [`settle: the customer gets ${what}`] };
}

/** The graph, with its checkpoints kept by what the caller gives. */
export function refundGraph(checkpointer) {
  return new StateGraph(State)
    .addNode("read", read)
    .addNode("assess", assess)
    .addNode("ask", ask)
    .addNode("settle", settle)
    .addEdge(START, "read")
    .addEdge("read", "assess")
    .addEdge("assess", "ask")
    .addEdge("ask", "settle")
    .addEdge("settle", END)
    .compile({ checkpointer });
}
