import fc from "fast-check";
import { describe, it } from "vitest";
import { type Branch, isAgstateError, openStore } from "../../src/index.js";
import { usually } from "../support/runs.js";

/** What may happen, in any order, to documents, to a branch and to the reviews about it. */
const happening = fc.oneof(
  { weight: 4, arbitrary: fc.record({ what: fc.constant("resume" as const) }) },
  { weight: 2, arbitrary: fc.record({ what: fc.constant("handoff" as const) }) },
  { weight: 2, arbitrary: fc.record({ what: fc.constant("approve" as const) }) },
  fc.record({ what: fc.constant("discard" as const) }),
  fc.record({ what: fc.constant("work" as const) }),
  { weight: 3, arbitrary: fc.record({ what: fc.constant("read" as const), doc: fc.nat(1) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      what: fc.constant("world" as const),
      doc: fc.nat(1),
      is: fc.constantFrom("1", "2", "2", null, "failing" as const),
    }),
  },
);
type Happening = typeof happening extends fc.Arbitrary<infer T> ? T : never;

/** What is on record of a document that steps have read. */
interface Relied {
  readonly version: string | null;
  readonly steps: readonly number[];
}

/** How it is to come out, written down without a look at how it is done. */
class Model {
  readonly world = new Map<number, string | null | "failing">([0, 1].map((doc) => [doc, "1"]));
  private relied = new Map<number, Relied>();
  private review: { key: string; status: "open" | "approved" | "discarded" | "closed" } | null =
    null;
  private envelope = 0;
  private lastStep = 0;
  handedOff = false;

  read(doc: number): void {
    const is = this.world.get(doc) ?? null;
    const before = this.relied.get(doc);
    this.lastStep++;
    this.relied.set(doc, {
      version: is === "failing" ? null : is,
      steps: [...(before?.steps ?? []), this.lastStep],
    });
  }

  work(): void {
    this.lastStep++;
  }

  handOff(): void {
    this.handedOff = true;
    this.envelope++;
  }

  decide(status: "approved" | "discarded"): boolean {
    if (this.review?.status !== "open") return false;
    this.review.status = status;
    return true;
  }

  /** Whether work may go on, and whether the branch is taken up by that. */
  resume(): { ready: boolean; verdict: string } {
    const standing: [doc: number, found: string, relied: Relied, now: string | null][] = [];
    for (const [doc, relied] of this.relied) {
      const is = this.world.get(doc) ?? null;
      if (is === "failing") standing.push([doc, "unknown", relied, null]);
      else if (is === null) standing.push([doc, "gone", relied, null]);
      else if (relied.version === null) standing.push([doc, "unknown", relied, is]);
      else if (relied.version !== is) standing.push([doc, "changed", relied, is]);
    }
    const isStale = standing.some(([, found]) => found !== "unknown");
    const verdict = standing.length === 0 ? "fresh" : isStale ? "stale" : "unknown";
    if (standing.length === 0) {
      if (this.review?.status === "open" || this.review?.status === "approved") {
        this.review.status = "closed";
      }
      if (this.handedOff) this.takenUp();
      return { ready: true, verdict };
    }
    const key = JSON.stringify([this.envelope, standing]);
    if (this.review?.key !== key || this.review.status === "closed") {
      this.review = { key, status: "open" };
    }
    if (this.review.status !== "approved") return { ready: false, verdict };
    this.review.status = "closed";
    for (const [doc, found, relied, now] of standing) {
      if (found === "gone") this.relied.delete(doc);
      else if (found === "changed") this.relied.set(doc, { ...relied, version: now });
    }
    this.takenUp();
    return { ready: true, verdict };
  }

  private takenUp(): void {
    this.handedOff = false;
    this.envelope++;
  }
}

/** Does what happens to the real thing, and says how it came out. */
async function happen(
  branch: Branch,
  one: Happening,
  doc: { readonly id: string; readonly version: string | null },
): Promise<unknown> {
  const attempt = async (work: () => Promise<unknown>) => {
    try {
      return await work();
    } catch (error) {
      if (isAgstateError(error, "HANDED_OFF")) return "handed off";
      throw error;
    }
  };
  switch (one.what) {
    case "read":
      return attempt(() =>
        branch.step({ name: "read", action: "inference" }, async ({ relyOn }) => {
          await relyOn({ type: "doc", id: doc.id, version: doc.version });
          return "done";
        }),
      );
    case "work":
      return attempt(() => branch.step({ name: "work", action: "write" }, () => "done"));
    case "handoff":
      await branch.handoff({ summary: "g" });
      return "done";
    case "resume": {
      const { ready, verdict } = await branch.resume({ retries: 0 });
      return { ready, verdict };
    }
    default:
      return undefined;
  }
}

function expected(model: Model, one: Happening): unknown {
  switch (one.what) {
    case "read":
    case "work":
      if (model.handedOff) return "handed off";
      if (one.what === "read") model.read(one.doc);
      else model.work();
      return "done";
    case "handoff":
      model.handOff();
      return "done";
    case "resume":
      return model.resume();
    default:
      return undefined;
  }
}

describe("hand-offs, in whatever order things happen", () => {
  it("let work go on where everything is as it was, or somebody has agreed to just what it is now", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(happening, { minLength: 30, maxLength: 60 }),
        async (happenings) => {
          const model = new Model();
          const doc = ({ id }: { id: string }) => {
            const is = model.world.get(Number(id)) ?? null;
            if (is === "failing") throw new Error("away");
            return is;
          };
          const store = await openStore("memory:", { checkers: { doc } });
          try {
            const workflow = await store.createWorkflow("w");
            const branch = await workflow.branch({ agent: "a", branch: "b" });
            for (const one of happenings) {
              if (one.what === "world") model.world.set(one.doc, one.is);
              else if (one.what === "approve" || one.what === "discard") {
                const status = one.what === "approve" ? "approved" : "discarded";
                const isAsked = model.decide(status);
                const open = await workflow.reviews({ open: true });
                if (open.length !== (isAsked ? 1 : 0)) throw new Error(`${open.length} are open`);
                await open[0]?.[one.what]({ actor: "m" });
              } else {
                const wanted = JSON.stringify(expected(model, one));
                const id = one.what === "read" ? one.doc : 0;
                const is = model.world.get(id) ?? null;
                // What cannot be asked has no version that a step could know.
                const read = { id: String(id), version: is === "failing" ? null : is };
                const came = JSON.stringify(await happen(branch, one, read));
                if (came !== wanted) throw new Error(`${one.what}: ${came}, not ${wanted}`);
              }
            }
          } finally {
            await store.close();
          }
        },
      ),
      { numRuns: usually(100, 5000) },
    );
  });
});
