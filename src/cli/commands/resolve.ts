import { AgstateError, isAgstateError } from "../../core/errors.js";
import { formatPointer, parsePointer } from "../../core/json-pointer.js";
import type { Resolution } from "../../merge/resolvers.js";
import { parseStrictJson } from "../../objects/strict-json.js";
import type { StoredMerge } from "../../store/merge/merging.js";
import type { Conflict } from "../../store/merge/types.js";
import { readJson } from "../input.js";
import { shownPath } from "../render/conflict.js";
import { escapeLine } from "../render/escape.js";
import type { Session } from "../session.js";
import { tellWhatIsLeft } from "./stored-merge.js";

interface Options {
  readonly ours?: boolean;
  readonly theirs?: string | true;
  readonly value?: string;
  readonly file?: string;
  readonly delete?: boolean;
  readonly merge?: string;
  readonly part?: "state" | "policy";
  readonly author?: string;
}

/** `agstate resolve PATH`: decides what a conflicting path of a stored merge is to hold. */
export async function run(
  session: Session,
  args: readonly string[],
  given: Options,
): Promise<undefined> {
  const { path, options } = operands(args, given);
  parsePointer(path);
  const { resolution, how, words } = await resolutionOf(options);
  const { out } = session;
  const workflow = await session.workflow();
  const stored = await workflow.storedMerge(options.merge);
  const branch = typeof options.theirs === "string" ? knownAs(stored, options.theirs) : undefined;
  const by = options.author === undefined ? {} : { by: options.author };
  const place = await placeOf(stored, path, options.part);
  try {
    await stored.resolve(place.path, resolution, {
      part: place.part,
      ...by,
      ...(branch === undefined ? {} : { branch }),
    });
  } catch (error) {
    if (branch === undefined || !isAgstateError(error, "INVALID_ARGUMENT")) throw error;
    // Of several merged branches, the value of an earlier one is ours for the next.
    const conflicts = await stored.conflicts();
    const isOurs = conflicts.some(
      (c) => c.part === place.part && c.path === place.path && c.ours.branch === branch,
    );
    if (!isOurs) throw error;
    await stored.resolve(place.path, { take: "ours" }, { part: place.part, ...by });
  }
  if (out.json) {
    const open = await stored.openPaths();
    return void (await out.value({ merge: stored.name, ...place, how, open }));
  }
  const whose = branch === undefined ? words : `${words} of ${escapeLine(branch)}`;
  await out.line(`Resolved ${out.paint.path(shownPath(place))}: ${whose}.`);
  await tellWhatIsLeft(session, workflow, stored);
}

/**
 * Where a resolution acts. Merge policies are themselves a value, whose members
 * are the paths that they are for, so that a policy may be named by its path.
 */
async function placeOf(
  stored: StoredMerge,
  path: string,
  part: "state" | "policy" = "state",
): Promise<Pick<Conflict, "part" | "path">> {
  if (part === "state") return { part, path };
  const open = await stored.openPaths();
  const places = [...open, ...stored.info.resolved].filter((place) => place.part === part);
  const asMember = formatPointer([path]);
  const isMember = places.some((place) => place.path === asMember);
  return { part, path: isMember ? asMember : path };
}

/** `--theirs /path` means the path, not a branch: no branch begins with a slash. */
function operands(
  args: readonly string[],
  options: Options,
): { readonly path: string; readonly options: Options } {
  const [path] = args;
  if (path !== undefined) return { path, options };
  const { theirs } = options;
  if (typeof theirs === "string" && theirs.startsWith("/")) {
    return { path: theirs, options: { ...options, theirs: true } };
  }
  throw new AgstateError(
    "INVALID_ARGUMENT",
    "name the path to resolve; agstate conflicts shows which are open",
  );
}

const CHOICES = ["ours", "theirs", "value", "file", "delete"] as const;

/** What was chosen, as a resolution, as it is recorded, and in words. */
async function resolutionOf(options: Options): Promise<{
  readonly resolution: Resolution;
  readonly how: string;
  readonly words: string;
}> {
  const chosen = CHOICES.filter((choice) => options[choice] !== undefined);
  const [choice] = chosen;
  if (choice === undefined || chosen.length > 1) {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      "say what the path is to hold with one of --ours, --theirs, --value JSON, --file FILE, --delete",
      { given: chosen },
    );
  }
  if (choice === "delete")
    return { resolution: { delete: true }, how: "delete", words: "no value" };
  if (choice === "ours" || choice === "theirs") {
    return { resolution: { take: choice }, how: choice, words: choice };
  }
  const value =
    choice === "value"
      ? parseStrictJson(options.value as string, "the value")
      : await readJson(options.file as string);
  return { resolution: { value }, how: "value", words: "the value given" };
}

/** The branch as the stored merge names it; `booker/try-1` is short for `agents/booker/try-1`. */
function knownAs(stored: StoredMerge, given: string): string {
  const names = stored.info.sources.map(({ branch }) => branch);
  const long = `agents/${given}`;
  return !names.includes(given) && names.includes(long) ? long : given;
}
