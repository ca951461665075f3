import { expect, it } from "vitest";
import { environmentKeys } from "../../src/index.js";
import { DataKeys } from "../../src/keys/data-keys.js";
import { subjectCipher, workflowMaterial } from "../../src/keys/material.js";
import { openPending } from "../../src/objects/pending.js";

/** What was sealed once must open for ever: none of these may change. */
const DATA_KEY = Uint8Array.from({ length: 64 }, (_, i) => i);
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

const keys = new DataKeys(
  "golden",
  "payloads",
  {
    kind: "open",
    material: workflowMaterial("golden", DATA_KEY),
    wrapped: { keyName: "k", version: "", wrapped: DATA_KEY },
  },
  { read: async () => [], put: async () => undefined },
);

it("a workflow's data key seals blobs and digests values as it ever did", () => {
  expect(hex(keys.seal('{"n":1}').body)).toMatchInlineSnapshot(
    `"01ee0bdf7d2c72fc80124f39accaf82dd70c1c78bffc7054"`,
  );
  expect(keys.digest('{"n":1}')).toMatchInlineSnapshot(
    `"43931b9caca5bdb8f79ad296aa4922e97be6663fc6edfa759cc6a49476487914"`,
  );
  expect(keys.tagOf("ann")).toMatchInlineSnapshot(`"e166b52fbadcdd805f933c04d98003ce"`);
});

it("a subject's seed seals as it ever did", () => {
  const siv = subjectCipher("golden", keys.tagOf("ann"), DATA_KEY.subarray(0, 32));
  expect(hex(siv.seal(Buffer.from('{"n":1}')))).toMatchInlineSnapshot(
    `"f55ad56326f7d33c212a25f02aa80fd1ebe3181591dacd"`,
  );
});

it("a pending row that was sealed once opens", () => {
  const body = Buffer.from(
    "0253d94439cd90a2d18f6da5208a321d52c1a69df7856a024a959cfbd04df1e6b470a303f401",
    "hex",
  );
  expect(openPending({ key: "k/1", index: 2, body }, keys)).toEqual({ n: 1 });
});

it("a data key that was wrapped once by a local key unwraps", async () => {
  const provider = environmentKeys({ AGSTATE_KEY_DEFAULT: hex(DATA_KEY.subarray(0, 32)) });
  const wrapped = Buffer.from(
    "QQkFYqsKXalFV93P+LJrHw0YPF1Qw4kFRXAg4VPhuyiYhw4WnyWIxavPBqUlnz69/XCXYhmzbUmA9Jw60JorvipLJESLLZxPdPZLJnc3pOSQnzy/YK+ddGnO/E0=",
    "base64",
  );
  const key = { keyName: "default", version: "1180c2626e07ac78", wrapped };
  const unwrapped = await provider.unwrap(key, { agstate: "workflow-key", workflow: "golden" });
  expect(hex(unwrapped as Uint8Array)).toBe(hex(DATA_KEY));
});
