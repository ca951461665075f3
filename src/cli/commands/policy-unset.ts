import { AgstateError } from "../../core/errors.js";
import { parsePointer } from "../../core/json-pointer.js";
import { quoteForMessage } from "../../core/names.js";
import { newHeadLine } from "../render/merge.js";
import type { Session } from "../session.js";
import type { PolicyOptions } from "./policy-set.js";

/** `agstate policy unset PATH`. */
export async function run(
  session: Session,
  args: readonly string[],
  options: PolicyOptions,
): Promise<undefined> {
  const { out } = session;
  const [path] = args as [string];
  parsePointer(path);
  const branch = await (await session.workflow()).branch(options.branch ?? "canonical");
  if (!Object.hasOwn(await branch.policies(), path)) {
    throw new AgstateError(
      "PATH_NOT_FOUND",
      `${branch.name} has no merge policy for ${quoteForMessage(path)}; agstate policy shows those that it has`,
      { path, branch: branch.name },
    );
  }
  const commit = await branch.setPolicies(
    { [path]: null },
    {
      message: options.message ?? `Remove the merge policy of ${quoteForMessage(path)}`,
      ...(options.author === undefined ? {} : { author: options.author }),
    },
  );
  if (out.json) {
    const policies = await branch.policies();
    return void (await out.value({
      branch: branch.name,
      commit: commit.id,
      written: true,
      policies,
    }));
  }
  await out.line(newHeadLine(out.paint, branch.name, commit));
}
