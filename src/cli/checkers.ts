import type { CheckBounds } from "../staleness/check.js";
import type { CheckerConfig } from "../staleness/config-check.js";
import type { Checkers } from "../staleness/types.js";

/** How resources are checked, as a file says it; without one, files below this folder, and what is on the public network. */
export async function checkersOf(
  file: string | undefined,
): Promise<{ readonly checkers: Checkers } & CheckBounds> {
  const { checkBounds, createCheckers, readCheckersFile } = await import("../staleness/config.js");
  const config = file === undefined ? here() : await readCheckersFile(file, process.env);
  return { checkers: createCheckers(config), ...checkBounds(config) };
}

function here(): CheckerConfig {
  const { PATH } = process.env;
  return { root: process.cwd(), ...(PATH && { searchPath: PATH }) };
}
