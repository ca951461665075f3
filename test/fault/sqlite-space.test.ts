import { describe, expect, it } from "vitest";
import { isAgstateError } from "../../src/core/errors.js";
import type { ObjectRecord } from "../../src/storage/port.js";
import { ANY, at, begin, blob, commit, move, mustMove, send } from "../../src/testing/fixtures.js";
import { append, open, REF, tempDirectory } from "./sqlite-helpers.js";

describe("a store without space", () => {
  it("says so, keeps its heads, and goes on when there is space again", async () => {
    const path = await tempDirectory();
    const full = await open(path, { create: true, maxPageCount: 60 });
    await begin(full, "w");
    let head = await append(full, 1);
    let error: unknown = null;
    for (let i = 0; i < 1000 && error === null; i++) {
      try {
        head = await append(full, 1, head, 5000);
      } catch (e) {
        error = e;
      }
    }
    expect(error).toMatchObject({ code: "STORE_FULL", cause: expect.anything() });
    const [row] = await full.readRefs("w", { names: [REF] });
    expect(row!.id).toBe(head.id);
    expect(await full.checkStructure()).toEqual([]);
    await full.close();

    const roomy = await open(path);
    await append(roomy, 5, head);
    expect((await roomy.readReflog("w", REF, { limit: 1000 })).length).toBe(row!.seq + 5);
  });

  it("lets the small members of a group land when a large one does not fit", async () => {
    const path = await tempDirectory();
    const storage = await open(path, { create: true, maxPageCount: 60 });
    await begin(storage, "w");
    const large = blob(Buffer.alloc(1_000_000, 7));
    const outcomes = await Promise.all(
      ["a", "b", "c", "d"].map((name) =>
        send(storage, [move(`refs/heads/${name}`, ANY, [commit()])], {
          objects: name === "b" ? [large] : [blob(name)],
        }).then(
          (answer) => answer.moves[0]!.outcome,
          (e: unknown) => (isAgstateError(e) ? e.code : e),
        ),
      ),
    );
    expect(outcomes).toEqual(["moved", "STORE_FULL", "moved", "moved"]);
    const names = (await storage.readRefs("w", { prefix: "" })).map((row) => row.name);
    expect(names).toEqual(["refs/heads/a", "refs/heads/c", "refs/heads/d"]);
    expect(await storage.readObjects("w", [large.id])).toEqual([undefined]);
  });
});

describe("a group with a member that cannot be written", () => {
  const broken = {
    "a body that is none": { ...blob("x"), body: null as unknown as Uint8Array },
    "a type that is none": { ...blob("x"), type: "tag" as "blob" },
  };

  for (const [name, object] of Object.entries(broken)) {
    it(`rejects that member and lands the others: ${name}`, () => rejectsOne(object));
  }

  async function rejectsOne(object: ObjectRecord): Promise<void> {
    const storage = await open(await tempDirectory(), { create: true });
    await begin(storage, "w");
    const root = commit();
    await mustMove(storage, move(REF, ANY, [root]));
    const next = commit({ parents: [root] });
    const [bad, good] = await Promise.allSettled([
      send(storage, [move("refs/heads/bad", ANY, [commit()])], { objects: [object] }),
      send(storage, [move(REF, at(root), [next])]),
    ]);
    expect(bad.status).toBe("rejected");
    expect(good).toMatchObject({ status: "fulfilled", value: { moves: [{ outcome: "moved" }] } });
    expect((await storage.readRefs("w", { prefix: "" })).map((row) => row.name)).toEqual([REF]);
  }
});
