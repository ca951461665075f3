import { isJsonObject, type JsonObject, type JsonValue } from "../../core/json.js";
import { formatPointer } from "../../core/json-pointer.js";
import { isWithheld } from "../../core/withheld.js";
import type { Change } from "../../merge/diff.js";
import { canonicalText } from "../../objects/canonical.js";
import { longGaps } from "./long-gaps.js";

type Path = readonly (string | number)[];

/**
 * What differs between two values at hand, told as `agstate diff` tells of
 * stored ones: by path below them, lists aligned element by element.
 */
export function* valueChanges(
  before: JsonValue | undefined,
  after: JsonValue | undefined,
  path: Path = [],
): Generator<Change, void, undefined> {
  if (before === undefined || after === undefined) {
    if (after !== undefined) yield { kind: "added", path: formatPointer(path), after };
    else if (before !== undefined) yield { kind: "removed", path: formatPointer(path), before };
  } else if (Array.isArray(before) && Array.isArray(after)) {
    yield* listChanges(before, after, path);
  } else if (isPlain(before) && isPlain(after)) {
    const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
    for (const key of [...keys].sort()) {
      yield* valueChanges(member(before, key), member(after, key), [...path, key]);
    }
  } else if (canonicalText(before) !== canonicalText(after)) {
    yield { kind: "changed", path: formatPointer(path), before, after };
  }
}

function isPlain(value: JsonValue): value is JsonObject {
  return isJsonObject(value) && !isWithheld(value);
}

function member(object: { readonly [key: string]: JsonValue }, key: string): JsonValue | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** What stands against each other in a gap counts as changed; the rest of it as removed and added. */
function* listChanges(
  before: readonly JsonValue[],
  after: readonly JsonValue[],
  path: Path,
): Generator<Change, void, undefined> {
  for (const gap of longGaps(before.map(canonicalText), after.map(canonicalText))) {
    const both = Math.min(gap.aTo - gap.aFrom, gap.bTo - gap.bFrom);
    for (let i = 0; i < both; i++) {
      const at = gap.bFrom + i;
      yield* valueChanges(before[gap.aFrom + i], after[at], [...path, at]);
    }
    for (let i = gap.aFrom + both; i < gap.aTo; i++) {
      yield* valueChanges(before[i], undefined, [...path, i]);
    }
    for (let i = gap.bFrom + both; i < gap.bTo; i++) {
      yield* valueChanges(undefined, after[i], [...path, i]);
    }
  }
}
