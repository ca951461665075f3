import { describe, expect, it } from "vitest";
import type { Workflow } from "../../src/index.js";
import { agstateError, BACKENDS, makeStore } from "../support/stores.js";

const start = async (backend: (typeof BACKENDS)[number]): Promise<Workflow> => {
  const { store } = await makeStore(backend);
  return store.createWorkflow("w", { state: { answer: null } });
};

describe.each(BACKENDS)("workflow.speculate on %s", (backend) => {
  it("runs strategies side by side, merges the winner, discards the others for the reflog to keep", async () => {
    const workflow = await start(backend);
    let together = 0;
    const meet = async () => {
      together++;
      while (together < 3) await new Promise((resolve) => setTimeout(resolve, 1));
    };
    const result = await workflow.speculate<number>({
      agent: "solver",
      strategies: {
        quick: async (branch) => {
          await meet();
          await branch.commit({ state: { answer: "guess" } });
          return 1;
        },
        careful: async (branch) => {
          await meet();
          await branch.commit({ state: { answer: "reasoned" } });
          return 3;
        },
        broken: async (branch) => {
          await meet();
          await branch.commit({
            state: { answer: "half" },
            step: { action: "execute", record: { name: "send e-mail" } },
          });
          throw new Error("out of tokens");
        },
      },
      judge: (candidates) => {
        expect(candidates.map(({ name }) => name)).toEqual(["quick", "careful"]);
        return candidates.toSorted((a, b) => b.answer - a.answer)[0]?.name ?? null;
      },
    });
    expect(result).toMatchObject({ winner: "careful", answer: 3 });
    expect(result.merge?.status).toBe("fast-forward");
    expect(await workflow.stateAt("canonical")).toEqual({ answer: "reasoned" });

    expect(result.discarded.map(({ name }) => name)).toEqual(["quick", "broken"]);
    const [quick, broken] = result.discarded;
    expect(quick?.sideEffects).toEqual([]);
    expect(broken?.sideEffects).toEqual([
      {
        number: 1,
        name: "send e-mail",
        action: "execute",
        status: "completed",
        key: null,
        commit: broken?.head,
      },
    ]);
    expect(broken?.error).toEqual(new Error("out of tokens"));
    const names = (await workflow.refs("refs/heads/agents/")).map(({ shortName }) => shortName);
    expect(names).toEqual([result.candidates[1]?.branch.name]);

    const name = quick?.branch as string;
    expect(await workflow.resolve(`${name}@{1}`)).toBe(quick?.head);
    const [, agent, branch] = name.split("/") as [string, string, string];
    const back = await workflow.branch({ agent, branch, from: quick?.head as string });
    expect(await back.state()).toEqual({ answer: "guess" });
  });

  it("keeps everything when the winner does not merge, and discards all when none wins", async () => {
    const workflow = await start(backend);
    const conflicting = await workflow.speculate({
      strategies: {
        only: async (branch) => {
          await branch.commit({ state: { answer: 1 } });
          await (await workflow.canonical()).commit({ state: { answer: 2 } });
        },
        other: async () => undefined,
      },
      judge: () => "only",
    });
    expect(conflicting.merge?.status).toBe("conflict");
    expect(conflicting.discarded).toEqual([]);
    expect(await workflow.refs("refs/heads/agents/")).toHaveLength(2);

    const none = await workflow.speculate({
      strategies: { a: async () => 1, b: async () => 2 },
      judge: () => null,
    });
    expect(none).toMatchObject({ winner: null, answer: null, merge: null });
    expect(none.discarded).toHaveLength(2);
    const failed = await workflow.speculate({
      strategies: {
        a: async () => {
          throw new Error("no");
        },
      },
      judge: () => expect.unreachable(),
    });
    expect(failed).toMatchObject({ winner: null, candidates: [{ outcome: "failed" }] });
  });

  it("refuses a judge's invention, strategies without a usable name, and stops on a signal", async () => {
    const workflow = await start(backend);
    const strategies = { a: async () => 1 };
    await expect(workflow.speculate({ strategies, judge: () => "b" })).rejects.toEqual(
      agstateError("INVALID_ARGUMENT", { winner: "b" }),
    );
    await expect(workflow.speculate({ strategies: {}, judge: () => null })).rejects.toEqual(
      agstateError("INVALID_ARGUMENT"),
    );
    const before = await workflow.refs();
    await expect(
      workflow.speculate({ strategies: { "not/a name": async () => 1 }, judge: () => null }),
    ).rejects.toEqual(agstateError("INVALID_NAME"));
    expect(await workflow.refs()).toEqual(before);
    await expect(
      workflow.speculate({
        strategies,
        judge: () => "a",
        signal: AbortSignal.abort(new Error("stop")),
      }),
    ).rejects.toThrow("stop");
  });
});
