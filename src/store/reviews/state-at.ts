import { parsePointer } from "../../core/json-pointer.js";
import type { LoadedCommit } from "../../objects/commit-reader.js";
import { decodeAt } from "../../objects/decode.js";
import { digestOfValue } from "../../reviews/binding.js";
import type { BoundPath } from "../../reviews/record.js";
import type { Repository } from "../repository.js";

/** What stands at paths of a commit's state, as a review keeps it. */
export async function boundPaths(
  repository: Repository,
  commit: LoadedCommit,
  paths: readonly string[],
): Promise<BoundPath[]> {
  const bound: BoundPath[] = [];
  const link = commit.root.state;
  const digest = (text: string) => repository.keys.digest(text);
  for (const path of paths) {
    const tokens = parsePointer(path);
    const value =
      link === undefined ? undefined : await decodeAt(repository.objectsOf(commit), link, tokens);
    bound.push({ path, digest: digestOfValue(value, digest) });
  }
  return bound;
}
