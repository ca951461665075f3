import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DataKeys } from "../../src/keys/data-keys.js";
import { newDataKey, workflowMaterial } from "../../src/keys/material.js";
import { hashObject } from "../../src/objects/hash.js";
import { openPending, sealPending } from "../../src/objects/pending.js";
import { ENCODING, type PendingRow } from "../../src/storage/port.js";
import { agstateError } from "../support/stores.js";

/** Keys with rows in memory, as one process has them. */
function keysOf(workflow: string, dataKey: Uint8Array, rows = new Map<string, PendingRow>()) {
  const wrapped = { keyName: "k", version: "1", wrapped: dataKey };
  const material = workflowMaterial(workflow, dataKey);
  return new DataKeys(
    workflow,
    "payloads",
    { kind: "open", material, wrapped },
    {
      read: async (keys) => keys.flatMap((key) => rows.get(key) ?? []),
      put: async (put) => {
        for (const row of put) if (!rows.has(row.key)) rows.set(row.key, row);
      },
    },
  );
}

const texts = fc.string({ unit: "binary", maxLength: 300 });
const record = ({ body, encoding }: { body: Buffer; encoding: number }) => ({
  id: hashObject("blob", body),
  type: "blob" as const,
  body,
  encoding,
});

describe("what a workflow's key seals", () => {
  it("opens with it, and is damage with any other, in another workflow, or changed", () => {
    const [key, other] = [newDataKey(), newDataKey()];
    const keys = keysOf("w", key);
    fc.assert(
      fc.property(texts, fc.nat(), (text, at) => {
        const sealed = record(keys.seal(text));
        expect(sealed.encoding).toBe(ENCODING.encrypted);
        expect(sealed.body.length).toBe(Buffer.byteLength(text.toWellFormed()) + 17);
        expect(keys.open(sealed)).toBe(text.toWellFormed());
        expect(record(keysOf("w", key).seal(text))).toEqual(sealed);
        expect(record(keysOf("v", key).seal(text)).id).not.toBe(sealed.id);
        for (const stranger of [keysOf("v", key), keysOf("w", other)]) {
          expect(() => stranger.open(sealed)).toThrow(agstateError("CORRUPT_OBJECT"));
        }
        const body = Buffer.from(sealed.body);
        const bit = 8 + (at % (8 * (body.length - 1)));
        body[bit >> 3] = (body[bit >> 3] as number) ^ (1 << (bit & 7));
        expect(() => keys.open({ ...sealed, body })).toThrow(agstateError("CORRUPT_OBJECT"));
        const short = sealed.body.subarray(0, 1 + (at % 16));
        expect(() => keys.open({ ...sealed, body: short })).toThrow(agstateError("CORRUPT_OBJECT"));
      }),
    );
  });

  it("is told from forms that a newer version may have", () => {
    const keys = keysOf("w", newDataKey());
    const { id, type, encoding } = record(keys.seal("x"));
    for (const body of [Buffer.of(3, 1, 2), Buffer.alloc(0)]) {
      expect(() => keys.open({ id, type, encoding, body })).toThrow(
        agstateError("UNSUPPORTED_ENCODING"),
      );
    }
  });

  it("has another key for each subject, which others find by its rows", async () => {
    const [key, rows] = [newDataKey(), new Map<string, PendingRow>()];
    const keys = keysOf("w", key, rows);
    expect(keys.of("ann")).toBeNull();
    await keys.ensureSubjects(["ann", "bob", "ann"]);
    const [ann, bob] = [keys.of("ann")!, keys.of("bob")!].map((seal) => record(seal.seal("same")));
    expect(new Set([ann!.id, bob!.id, record(keys.seal("same")).id]).size).toBe(3);
    for (const name of rows.keys()) expect(name).toMatch(/^keys\/subject\/[0-9a-f]{32}$/);

    const reader = keysOf("w", key, rows);
    expect(reader.open(ann!)).toEqual({ reason: "key" });
    await reader.prepare([ann!, bob!]);
    expect(reader.open(ann!)).toMatchObject({ text: "same" });
    await reader.ensureSubjects(["ann"]);
    expect(record(reader.of("ann")!.seal("same"))).toEqual(ann);
    // Taken from another subject's row, a seed does not open.
    const [first, second] = [...rows.values()] as [PendingRow, PendingRow];
    const swapped = new Map([[first.key, { ...second, key: first.key }]]);
    await expect(keysOf("w", key, swapped).prepare([ann!, bob!])).rejects.toThrow(
      agstateError("CORRUPT_OBJECT"),
    );
  });
});

describe("a pending row", () => {
  it("that is sealed opens at its place alone, and is checked without its key", () => {
    const keys = keysOf("w", newDataKey());
    fc.assert(
      fc.property(texts, fc.nat(), (text, at) => {
        const row = sealPending("k/1", 3, { text: text.toWellFormed() }, keys);
        expect(openPending(row, keys)).toEqual({ text: text.toWellFormed() });
        expect(() => openPending(row)).toThrow(agstateError("KEY_UNAVAILABLE"));
        const body = Buffer.from(row.body);
        const byte = 1 + (at % (body.length - 1));
        body[byte] = (body[byte] as number) ^ 0x10;
        for (const wrong of [
          { ...row, body },
          { ...row, index: 4 },
          { ...row, key: "k/2" },
        ]) {
          expect(() => openPending(wrong, keys)).toThrow(agstateError("CORRUPT_OBJECT"));
        }
      }),
    );
    // One that was made right elsewhere does not open here either.
    const moved = sealPending("k/1", 3, "x", {
      sealRow: () => sealPending("k/2", 3, "x", keys).body.subarray(9),
      openRow: () => null,
    });
    expect(() => openPending(moved, keys)).toThrow(agstateError("CORRUPT_OBJECT"));
  });
});
