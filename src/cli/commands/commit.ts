import { AgstateError } from "../../core/errors.js";
import { readJson } from "../input.js";
import { commitJson, shortId } from "../render/commit.js";
import { escapeLine } from "../render/escape.js";
import type { Session } from "../session.js";

interface Options {
  readonly branch?: string;
  readonly message?: string;
  readonly author?: string;
  readonly mergeParent?: string[];
  readonly expected?: string;
  readonly allowEmpty?: boolean;
}

/** `agstate commit`: the whole state from a JSON file or standard input. */
export async function run(
  session: Session,
  args: readonly string[],
  options: Options,
): Promise<undefined> {
  const { out } = session;
  const workflow = await session.workflow();
  const branch = await workflow.branch(options.branch ?? "canonical");
  if (options.expected !== undefined) {
    const expected = await workflow.resolve(options.expected);
    if (expected !== branch.head.id) {
      throw new AgstateError(
        "REF_CONFLICT",
        `${branch.name} was expected to be at ${expected}, but is at ${branch.head.id}`,
        { ref: branch.ref, expected, actual: branch.head.id },
      );
    }
  }
  const state = args[0] === undefined ? {} : { state: await readJson(args[0]) };
  const before = branch.head.id;
  const commit = await branch.commit({
    ...state,
    ...(options.message === undefined ? {} : { message: options.message }),
    ...(options.author === undefined ? {} : { author: options.author }),
    ...(options.mergeParent === undefined ? {} : { mergeParents: options.mergeParent }),
    ...(options.allowEmpty === undefined ? {} : { allowEmpty: options.allowEmpty }),
  });
  if (out.json)
    return void (await out.value({ ...commitJson(commit), written: commit.id !== before }));
  const name = escapeLine(branch.name);
  if (commit.id === before) await out.line(`Nothing changed; ${name} stays at ${shortId(before)}.`);
  else
    await out.line(
      `[${name} ${out.paint.id(shortId(commit.id))}] ${escapeLine(commit.message.split("\n", 1)[0] as string)}`.trimEnd(),
    );
}
