import type { LoadedCommit } from "../../objects/commit-reader.js";
import type { Repository } from "../repository.js";
import { listSteps } from "../steps/list.js";

/** Steps that are open at a head, with their names, by number. */
export async function stepNames(
  repository: Repository,
  head: LoadedCommit,
  open: readonly number[],
): Promise<{ number: number; name: string }[]> {
  const left = new Set(open);
  const named: { number: number; name: string }[] = [];
  if (left.size === 0) return named;
  for await (const { number, name } of listSteps(repository, head, { status: "started" })) {
    if (left.delete(number)) named.push({ number, name });
    if (left.size === 0) break;
  }
  return named.sort((a, b) => a.number - b.number);
}
