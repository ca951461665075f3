// What the child scripts share: the built package, opened as a test opens it.
import { openSqliteStorage } from "../../../dist/storage/sqlite/open.js";
import { digest, randomHex } from "../../../dist/testing/index.js";

export { ABSENT, at, blob, commit, move } from "../../../dist/testing/fixtures.js";

export const REF = "refs/heads/canonical";

export function open(path, create = false) {
  const graceMs = 14 * 24 * 60 * 60 * 1000;
  const now = Date.now;
  return openSqliteStorage({
    path,
    create,
    busyTimeoutMs: 60_000,
    graceMs,
    digest,
    randomHex,
    now,
  });
}

/** The commit that the ref points to, or undefined. */
export async function head(storage) {
  const [row] = await storage.readRefs("w", { names: [REF] });
  return row?.id ? (await storage.readCommits("w", [row.id]))[0] : undefined;
}
