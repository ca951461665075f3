import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { AgstateError } from "../../src/core/errors.js";
import type { JsonValue } from "../../src/core/json.js";
import { openPending, sealPending } from "../../src/objects/pending.js";
import type { Storage } from "../../src/storage/port.js";
import { jsonValues } from "../support/json.js";
import { agstateError, BACKENDS, makeStore } from "../support/stores.js";

/** The form of a body that is encrypted. */
const SEALED = 2;

describe("a pending row's body", () => {
  it("is a byte, eight bytes of a hash of all that the row is, and canonical JSON", () => {
    const { key, index, body } = sealPending("a/b", -3, { é: [1, null], a: "x" });
    const text = '{"a":"x","é":[1,null]}';
    const hash = createHash("sha256").update(`a/b\0-3\0${text}`).digest("hex").slice(0, 16);
    expect([key, index]).toEqual(["a/b", -3]);
    expect(Buffer.from(body).toString("hex")).toBe(`01${hash}${Buffer.from(text).toString("hex")}`);
    expect(openPending({ key, index, body })).toEqual({ é: [1, null], a: "x" });
  });

  it("is told from one that was damaged in any byte, cut, or stands elsewhere", () => {
    const change = fc.integer({ min: 1, max: 255 });
    const given = [fc.string(), fc.integer({ min: -9, max: 9 }), jsonValues(), fc.nat(), change];
    fc.assert(
      fc.property(...(given as [fc.Arbitrary<string>]), (...args: unknown[]) => {
        const [key, index, value, at, flip] = args as [string, number, JsonValue, number, number];
        const plain = JSON.parse(JSON.stringify(value)) as JsonValue;
        const row = sealPending(key, index, plain);
        expect(openPending(row)).toEqual(plain);
        const body = Buffer.from(row.body);
        const place = at % body.length;
        body[place] = (body[place] as number) ^ flip;
        // Of a form that is known it is one of that form, which nobody sealed.
        const damaged = () => openPending({ ...row, body });
        if (place > 0) expect(damaged).toThrow(agstateError("CORRUPT_OBJECT"));
        else if (body[0] === SEALED) expect(damaged).toThrow(AgstateError);
        else expect(damaged).toThrow(agstateError("UNSUPPORTED_ENCODING"));
        const others = [
          { ...row, body: row.body.subarray(0, -1) },
          { ...row, index: index + 1 },
          { ...row, key: `${key}/` },
        ];
        for (const other of others) {
          expect(() => openPending(other)).toThrow(agstateError("CORRUPT_OBJECT"));
        }
      }),
    );
  });
});

describe.each(BACKENDS)("pending rows, on %s", (backend) => {
  it("are counted by fsck and the usage, and named where they are damaged", async () => {
    let storage: Storage | undefined;
    const wrap = (made: Storage) => {
      storage = made;
      return made;
    };
    const { store } = await makeStore(backend, { wrap });
    const workflow = await store.createWorkflow("w");
    const good = Array.from({ length: 5 }, (_, i) => sealPending(`k/${i}`, 0, { n: i }));
    const put = (pending: typeof good) =>
      storage?.write({ workflow: "w", objects: [], moves: [], atomic: true, pending });
    await put(good);
    expect(await workflow.fsck()).toMatchObject({ pending: 5, problems: [] });
    expect(await workflow.usage()).toMatchObject({ pending: 5 });
    await put([{ ...(good[2] as (typeof good)[0]), key: "k/moved" }]);
    await put([{ key: "k/none", index: -1, body: Buffer.alloc(0) }]);
    const { pending, problems } = await workflow.fsck();
    expect(pending).toBe(7);
    expect(problems.map(({ kind, subject }) => [kind, subject])).toEqual([
      ["corrupt-pending", "k/moved 0"],
      ["corrupt-pending", "k/none -1"],
    ]);
  });
});
