import { AgstateError } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import { parsePointer } from "../../core/json-pointer.js";
import { quoteForMessage } from "../../core/names.js";
import { isWithheld } from "../../core/withheld.js";
import { ROOT_PARTS, type RootPart } from "../../objects/commit-reader.js";

/** Paths as a tree of their tokens; `any` stands for any key and any element of a list. */
export interface PathNode {
  /** Names the node. */
  readonly id: number;
  /** Whether a path ends here. */
  readonly target: boolean;
  readonly any: PathNode | null;
  readonly keys: ReadonlyMap<string, PathNode>;
}

/** The paths that lead on from a place: a key may be met by its name and by `*`. */
export type Paths = readonly PathNode[];

interface MutableNode extends PathNode {
  target: boolean;
  any: MutableNode | null;
  keys: Map<string, MutableNode>;
}

/** Paths below commits' root trees, by the part of the tree that they lead into. */
export type PartPaths = ReadonlyMap<RootPart, Paths>;

/**
 * Reads paths below commits' root trees, such as `/state/user/email`, with `*` for any key or element.
 *
 * @throws AgstateError `INVALID_PATH`
 */
export function compilePaths(paths: readonly (readonly string[])[]): PartPaths {
  let made = 0;
  const newNode = (): MutableNode => ({ id: made++, target: false, any: null, keys: new Map() });
  const root = newNode();
  for (const tokens of paths) {
    let node = root;
    for (const [i, token] of tokens.entries()) {
      if (i > 0 && token === "*") {
        node.any ??= newNode();
        node = node.any;
      } else {
        const next = node.keys.get(token) ?? newNode();
        node.keys.set(token, next);
        node = next;
      }
    }
    node.target = true;
  }
  return new Map([...root.keys].map(([part, node]) => [part as RootPart, [node]]));
}

/**
 * The tokens of a path that may be erased.
 *
 * @throws AgstateError `INVALID_PATH`
 */
export function erasurePath(path: string): string[] {
  const tokens = parsePointer(path);
  if (!(ROOT_PARTS as readonly string[]).includes(tokens[0] as string)) {
    throw new AgstateError(
      "INVALID_PATH",
      `path ${quoteForMessage(path)} must begin with the part of a commit that it leads into: ${ROOT_PARTS.map((part) => `/${part}`).join(", ")}; for example /state/user/email`,
      { path },
    );
  }
  return tokens;
}

/** Whether one of the paths ends at this place. */
export function endsHere(paths: Paths): boolean {
  return paths.some(({ target }) => target);
}

export function belowKey(paths: Paths, key: string): Paths {
  return below(paths, key);
}

/** An element is met by its index, as it is in the version that is looked at. */
export function belowIndex(paths: Paths, index: number): Paths {
  return below(paths, String(index));
}

function below(paths: Paths, token: string): Paths {
  const found: PathNode[] = [];
  for (const { any, keys } of paths) {
    const named = keys.get(token);
    if (named !== undefined) found.push(named);
    if (any !== null) found.push(any);
  }
  return found;
}

/** The parts of a value at which paths end, outermost only. */
export function* valuesAt(value: JsonValue, paths: Paths): Generator<JsonValue, void, undefined> {
  if (paths.length === 0 || isWithheld(value)) return;
  if (endsHere(paths)) {
    yield value;
  } else if (Array.isArray(value)) {
    for (const [i, element] of value.entries()) yield* valuesAt(element, belowIndex(paths, i));
  } else if (typeof value === "object" && value !== null) {
    for (const [key, member] of Object.entries(value)) {
      yield* valuesAt(member as JsonValue, belowKey(paths, key));
    }
  }
}
