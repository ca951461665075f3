import { open, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { AgstateError, isAgstateError } from "../core/errors.js";
import { quoteForMessage } from "../core/names.js";
import {
  checkLocalName,
  type KeyVersions,
  newWrappingKey,
  noSuchKey,
  parseKey,
  unwrapWith,
  versionOf,
  wrapWith,
} from "./local.js";
import { DEFAULT_KEY_NAME, type KeyProvider } from "./provider.js";

/** The largest key file, in bytes: hundreds of versions. */
const KEY_FILE_MAX_BYTES = 64 * 1024;

/** Rights of somebody else than the file's owner. */
const OTHERS_MASK = 0o077;

/** What a key file begins with. */
const HEADER = `# A key of agstate, a version a line: the last one wraps, those before it unwrap what they wrapped.
# Keep it secret, and keep a copy elsewhere: what it encrypts is lost with it.
`;

/**
 * Keys in files that their owner alone can read: a file is the key `default`, a directory has a file `NAME.key` for each.
 * They are read whenever a key is wrapped or unwrapped.
 */
export function fileKeys(path: string): KeyProvider {
  return {
    async wrap(keyName, dataKey, context) {
      const keys = await keysOf(path, keyName);
      if (keys !== null) return wrapWith(keys, keyName, dataKey, context);
      const remedy = "make one with agstate keys new FILE";
      throw noSuchKey(keyName, `at ${quoteForMessage(path)}`, remedy);
    },
    async unwrap(wrapped, context) {
      const keys = await keysOf(path, wrapped.keyName);
      return keys === null ? null : unwrapWith(keys, wrapped, context);
    },
  };
}

async function keysOf(path: string, keyName: string): Promise<KeyVersions | null> {
  const name = checkLocalName(keyName);
  try {
    const { isDirectory } = await kindOf(path);
    if (!isDirectory) return name === DEFAULT_KEY_NAME ? await readKeyFile(path) : null;
    const file = join(path, `${name}.key`);
    return (await exists(file)) ? await readKeyFile(file) : null;
  } catch (cause) {
    if (isAgstateError(cause)) throw cause;
    throw new AgstateError(
      "KEY_UNAVAILABLE",
      `cannot read keys at ${quoteForMessage(path)}: ${(cause as Error).message}`,
      { path },
      { cause },
    );
  }
}

async function kindOf(path: string): Promise<{ isDirectory: boolean }> {
  return { isDirectory: (await stat(path)).isDirectory() };
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}

/**
 * Reads the versions of a key from its file.
 *
 * @throws AgstateError `KEY_UNAVAILABLE` when others may read it, or it is no key file
 */
async function readKeyFile(path: string): Promise<KeyVersions> {
  const file = await open(path, "r");
  try {
    // Of the very file that is read, not of one that takes its name in between.
    const { mode, size } = await file.stat();
    if (process.platform !== "win32" && (mode & OTHERS_MASK) !== 0) {
      const rights = (mode & 0o777).toString(8);
      throw unusable(
        path,
        `others than its owner have rights to it (mode ${rights}); run chmod 600`,
      );
    }
    if (size > KEY_FILE_MAX_BYTES) {
      throw unusable(
        path,
        `it has ${size} bytes, and at most ${KEY_FILE_MAX_BYTES} are read; name a file that agstate keys new made`,
      );
    }
    return parseKeyFile(path, await file.readFile("utf8"));
  } finally {
    await file.close();
  }
}

function parseKeyFile(path: string, text: string): KeyVersions {
  const keys: Uint8Array[] = [];
  for (const [i, line] of text.split("\n").entries()) {
    const said = line.trim();
    if (said === "" || said.startsWith("#")) continue;
    const key = parseKey(said);
    if (key === null) {
      throw unusable(path, `line ${i + 1} is not 32 bytes in base64, or 64 hex digits`);
    }
    keys.push(key);
  }
  if (keys.length > 0) return keys;
  throw unusable(path, "no line of it holds a key; make another file with agstate keys new FILE");
}

function unusable(path: string, why: string): AgstateError {
  return new AgstateError(
    "KEY_UNAVAILABLE",
    `key file ${quoteForMessage(path)} is not used: ${why}`,
    { path },
  );
}

/**
 * Makes a file with a new key, or, with `renew`, puts another version behind those of a file.
 *
 * @returns the new version, which wraps from now on
 * @throws AgstateError `INVALID_ARGUMENT` when the file is there, or with `renew` is not; `KEY_UNAVAILABLE`
 */
export async function newKeyFile(path: string, renew = false): Promise<string> {
  const key = newWrappingKey();
  const line = `${Buffer.from(key).toString("base64")}\n`;
  try {
    if (renew) {
      await readKeyFile(path);
      const before = await readFile(path, "utf8");
      const file = await open(path, "a");
      try {
        await file.writeFile(before.endsWith("\n") ? line : `\n${line}`);
        await file.sync();
      } finally {
        await file.close();
      }
    } else {
      // Never over what is there: what another key has wrapped would be lost.
      await writeFile(path, HEADER + line, { flag: "wx", mode: 0o600, flush: true });
    }
  } catch (cause) {
    if (isAgstateError(cause)) throw cause;
    const there = (cause as NodeJS.ErrnoException).code === "EEXIST";
    throw new AgstateError(
      "INVALID_ARGUMENT",
      there
        ? `${quoteForMessage(path)} is there already; choose another name, or add a version to it with --renew`
        : `cannot write ${quoteForMessage(path)}: ${(cause as Error).message}`,
      { path },
      { cause },
    );
  }
  return versionOf(key);
}
