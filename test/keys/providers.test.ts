import { randomBytes } from "node:crypto";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  environmentKeys,
  fileKeys,
  type KeyProvider,
  keysFrom,
  newKeyFile,
} from "../../src/index.js";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "agstate-keys-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** An error of a code, whose message holds a text. */
const agstateError = (code: string, says = "") =>
  expect.objectContaining({ code, message: expect.stringContaining(says) });

const dataKey = () => new Uint8Array(randomBytes(64));
const CONTEXT = { workflow: "w" };

async function unwrapped(provider: KeyProvider, context = CONTEXT, keyName = "default") {
  const key = dataKey();
  const wrapped = await provider.wrap(keyName, key, context);
  expect(wrapped.keyName).toBe(keyName);
  expect(Buffer.from(wrapped.wrapped).includes(Buffer.from(key))).toBe(false);
  return { key, wrapped };
}

describe("keys in a file", () => {
  it("wrap and unwrap, for their context alone", async () => {
    const file = join(directory, "k");
    const version = await newKeyFile(file);
    const provider = fileKeys(file);
    const { key, wrapped } = await unwrapped(provider);
    expect(wrapped.version).toBe(version);
    expect(Buffer.from((await provider.unwrap(wrapped, CONTEXT)) as Uint8Array)).toEqual(
      Buffer.from(key),
    );
    await expect(provider.unwrap(wrapped, { workflow: "other" })).rejects.toThrow(
      agstateError("KEY_UNAVAILABLE", "belongs to another workflow"),
    );
    const changed = Uint8Array.from(wrapped.wrapped);
    changed[20] = (changed[20] as number) ^ 1;
    await expect(provider.unwrap({ ...wrapped, wrapped: changed }, CONTEXT)).rejects.toThrow(
      agstateError("KEY_UNAVAILABLE"),
    );
    await expect(
      provider.unwrap({ ...wrapped, wrapped: changed.subarray(0, 3) }, CONTEXT),
    ).rejects.toThrow(agstateError("KEY_UNAVAILABLE"));
    // Another key, or another version, is somebody else's: it is not an error to lack it.
    expect(await provider.unwrap({ ...wrapped, keyName: "other" }, CONTEXT)).toBeNull();
    expect(await provider.unwrap({ ...wrapped, version: "0".repeat(16) }, CONTEXT)).toBeNull();
  });

  it("are made for their owner alone, never over what is there", async () => {
    const file = join(directory, "k");
    await newKeyFile(file);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const before = readFileSync(file, "utf8");
    await expect(newKeyFile(file)).rejects.toThrow(agstateError("INVALID_ARGUMENT", "--renew"));
    expect(readFileSync(file, "utf8")).toBe(before);
  });

  it("are refused when others may read them", async () => {
    const file = join(directory, "k");
    await newKeyFile(file);
    for (const mode of [0o640, 0o604, 0o620, 0o601]) {
      chmodSync(file, mode);
      await expect(fileKeys(file).wrap("default", dataKey(), CONTEXT)).rejects.toThrow(
        agstateError("KEY_UNAVAILABLE", `mode ${mode.toString(8)}`),
      );
    }
  });

  it("have versions: the last wraps, and those before it unwrap", async () => {
    const file = join(directory, "k");
    const first = await newKeyFile(file);
    const provider = fileKeys(file);
    const { key, wrapped } = await unwrapped(provider);
    const second = await newKeyFile(file, true);
    expect(second).not.toBe(first);
    expect(Buffer.from((await provider.unwrap(wrapped, CONTEXT)) as Uint8Array)).toEqual(
      Buffer.from(key),
    );
    expect((await unwrapped(provider)).wrapped.version).toBe(second);
    await expect(newKeyFile(join(directory, "none"), true)).rejects.toThrow(
      agstateError("INVALID_ARGUMENT"),
    );
  });

  it("may be many in a directory, by name", async () => {
    mkdirSync(join(directory, "keys"));
    await newKeyFile(join(directory, "keys", "eu-1.key"));
    const provider = fileKeys(join(directory, "keys"));
    const { wrapped } = await unwrapped(provider, CONTEXT, "eu-1");
    expect(await provider.unwrap(wrapped, CONTEXT)).not.toBeNull();
    await expect(provider.wrap("us-1", dataKey(), CONTEXT)).rejects.toThrow(
      agstateError("KEY_UNAVAILABLE", "us-1"),
    );
    await expect(provider.wrap("../eu-1", dataKey(), CONTEXT)).rejects.toThrow(
      agstateError("INVALID_NAME"),
    );
  });

  it("are refused where a file holds something else", async () => {
    const file = join(directory, "k");
    for (const [text, says] of [
      ["", "no line of it"],
      ["# nothing\n", "no line of it"],
      ["AAAA\n", "line 1"],
      ["x".repeat(70_000), "at most"],
    ] as const) {
      writeFileSync(file, text, { mode: 0o600 });
      await expect(fileKeys(file).wrap("default", dataKey(), CONTEXT)).rejects.toThrow(
        agstateError("KEY_UNAVAILABLE", says),
      );
    }
    await expect(
      fileKeys(join(directory, "none")).wrap("default", dataKey(), CONTEXT),
    ).rejects.toThrow(agstateError("KEY_UNAVAILABLE", "cannot read"));
  });
});

describe("keys in the environment", () => {
  const [one, two] = [randomBytes(32), randomBytes(32)];

  it("are 32 bytes in base64 or hex, the last of several in use", async () => {
    const first = environmentKeys({ AGSTATE_KEY_EU_1: one.toString("base64") });
    const { key, wrapped } = await unwrapped(first, CONTEXT, "eu-1");
    const both = environmentKeys({
      AGSTATE_KEY_EU_1: `${one.toString("hex")},${two.toString("hex")}`,
    });
    expect(Buffer.from((await both.unwrap(wrapped, CONTEXT)) as Uint8Array)).toEqual(
      Buffer.from(key),
    );
    expect((await unwrapped(both, CONTEXT, "eu-1")).wrapped.version).not.toBe(wrapped.version);
    const second = environmentKeys({ AGSTATE_KEY_EU_1: two.toString("base64") });
    expect(await second.unwrap(wrapped, CONTEXT)).toBeNull();
    expect(await environmentKeys({}).unwrap(wrapped, CONTEXT)).toBeNull();
  });

  it("are refused when they are none, without being shown", async () => {
    for (const bad of ["short", one.toString("base64").slice(2), `${one.toString("hex")}00`, ","]) {
      const provider = environmentKeys({ AGSTATE_KEY_DEFAULT: bad });
      const failure = provider.wrap("default", dataKey(), CONTEXT);
      await expect(failure).rejects.toThrow(agstateError("KEY_UNAVAILABLE", "AGSTATE_KEY_DEFAULT"));
      const { message } = (await failure.catch((error: unknown) => error)) as Error;
      if (bad.length > 1) expect(message).not.toContain(bad.slice(0, 12));
    }
    await expect(environmentKeys({}).wrap("default", dataKey(), CONTEXT)).rejects.toThrow(
      agstateError("KEY_UNAVAILABLE", "set AGSTATE_KEY_DEFAULT"),
    );
  });
});

it("are named by one word on the command line", async () => {
  const file = join(directory, "k");
  await newKeyFile(file);
  const { wrapped } = await unwrapped(keysFrom(`file:${file}`, {}));
  expect(await keysFrom("env:", {}).unwrap(wrapped, CONTEXT)).toBeNull();
  for (const bad of ["", "file:", "env", "env:X", file, "kms:x"]) {
    expect(() => keysFrom(bad, {})).toThrow(agstateError("INVALID_ARGUMENT"));
  }
});
