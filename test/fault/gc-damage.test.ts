import { expect, it } from "vitest";
import { openStore } from "../../src/index.js";
import { agstateError } from "../support/stores.js";
import { rawDatabase, tempDirectory } from "./sqlite-helpers.js";

const long = (seed: string) => Array.from({ length: 400 }, (_, i) => `${seed} line ${i}`);

it("nothing is collected where what is in use is damaged, since what is below it is not known", async () => {
  const path = await tempDirectory();
  const store = await openStore(`sqlite:${path}`);
  const workflow = await store.createWorkflow("w", { state: { doc: long("kept") } });
  const branch = await workflow.branch({ agent: "a", branch: "left" });
  await branch.commit({ state: { doc: long("left") } });
  await workflow.deleteBranch(branch.name);
  await store.close();

  const db = rawDatabase(path);
  const rows = () => (db.prepare("SELECT count(*) AS n FROM objects").get() as { n: number }).n;
  let inUse = 0;
  const trees = db.prepare("SELECT id, body FROM objects WHERE type = 2").all() as {
    id: Buffer;
    body: Buffer;
  }[];
  expect(trees.length).toBeGreaterThan(0);
  for (const { id } of trees) {
    const before = rows();
    const [kept] = db.prepare("SELECT * FROM objects WHERE id = ?").all(id) as [object];
    db.prepare("DELETE FROM objects WHERE id = ?").run(id);
    const again = await openStore(`sqlite:${path}`);
    const damaged = await again.workflow("w");
    const read = damaged.stateAt("canonical");
    if (
      await read.then(
        () => false,
        () => true,
      )
    ) {
      inUse++;
      await expect(damaged.gc({ graceMs: 0 })).rejects.toEqual(agstateError("MISSING_OBJECT"));
      expect(rows()).toBe(before - 1);
    }
    await again.close();
    const names = Object.keys(kept);
    db.prepare(`INSERT INTO objects (${names.join()}) VALUES (${names.map(() => "?").join()})`).run(
      ...Object.values(kept),
    );
  }
  db.close();
  expect(inUse).toBeGreaterThan(0);
  const whole = await openStore(`sqlite:${path}`);
  const healed = await whole.workflow("w");
  expect(await healed.gc({ graceMs: 0 })).toMatchObject({ commits: 1 });
  expect((await healed.fsck()).problems).toEqual([]);
  await whole.close();
});
