import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { openStore, type Probed, type RunContext, type Store } from "../../src/index.js";
import { startServer, type TestServer } from "../support/postgres-server.js";
import { agstateError, all } from "../support/stores.js";
import { twoResumes } from "../support/two-resumes.js";

describe("a resume", () => {
  twoResumes("postgres");

  describe("beside a PostgreSQL server that goes and comes again (STP-07)", () => {
    const NAMES = ["one", "two", "three", "four"];
    let server: TestServer;

    beforeAll(async () => {
      server = await startServer();
    });
    afterAll(() => server.remove());

    /** A run of four effects of which the first has happened. */
    async function begin(schema: string) {
      const effects: string[] = [];
      const open = async (busyTimeoutMs: number) => {
        const store = await openStore(`${server.url}?schema=${schema}`, {
          limits: { busyTimeoutMs },
        });
        onTestFinished(() => store.close());
        return store;
      };
      const resume = async (
        store: Store,
        beside: { readonly [name: string]: () => Promise<void> } = {},
      ) => {
        const workflow = await store.workflow("w");
        const probe = ({ key }: { key: string }): Probed<string> => {
          const found = effects.find((each) => each.endsWith(key));
          return found === undefined ? { happened: false } : { happened: true, output: found };
        };
        return workflow.run(await workflow.branch("a/x"), async (ctx: RunContext) => {
          const outputs: string[] = [];
          for (const name of NAMES) {
            const spec = { name, inDoubt: probe } as const;
            outputs.push(
              await ctx.step<string>(spec, async ({ key }) => {
                const effect = `${name} ${key}`;
                effects.push(effect);
                await beside[name]?.();
                return effect;
              }),
            );
          }
          return outputs;
        });
      };
      const store = await open(30_000);
      const workflow = await store.createWorkflow("w");
      await workflow.branch({ agent: "a", branch: "x" });
      const cut = async () => {
        throw new Error("cut off");
      };
      await expect(resume(store, { two: cut })).rejects.toThrow("cut off");
      effects.pop();
      return { effects, open, resume, store };
    }

    async function expectEachOnce(store: Store, effects: readonly string[], result: unknown) {
      expect(result).toEqual(effects);
      expect(effects.map((each) => each.split(" ")[0])).toEqual(NAMES);
      const workflow = await store.workflow("w");
      const steps = await all((await workflow.branch("a/x")).steps({ action: "execute" }));
      expect(steps.map(({ status }) => status)).toEqual(NAMES.map(() => "completed"));
      expect((await workflow.fsck()).problems).toEqual([]);
    }

    const restart = async () => {
      await server.crash();
      // The next write finds nobody there.
      void sleep(300).then(() => server.start());
    };

    it("goes on by itself where the server is back in time", async () => {
      const { effects, resume, store } = await begin("short");
      const beside = { two: restart, four: restart };
      await expectEachOnce(store, effects, await resume(store, beside));
    });

    it("is told, and goes on when it is run again, where it is not", async () => {
      const { effects, open, resume, store } = await begin("long");
      const impatient = await open(300);
      const gone = resume(impatient, { two: () => server.crash() });
      await expect(gone).rejects.toEqual(agstateError("STORE_UNAVAILABLE"));
      await expect(resume(impatient)).rejects.toEqual(agstateError("STORE_UNAVAILABLE"));
      await server.start();
      // By the same handles as before, and by others.
      const again = resume(impatient, { three: () => server.crash() });
      await expect(again).rejects.toEqual(agstateError("STORE_UNAVAILABLE"));
      await server.start();
      await expectEachOnce(store, effects, await resume(store));
    });
  });
});
