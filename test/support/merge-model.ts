import type { JsonValue } from "../../src/index.js";

/** A value, or undefined where there is none. */
export type Maybe = JsonValue | undefined;
type JsonObject = { readonly [key: string]: JsonValue };

export type Kind = "edit/edit" | "edit/delete" | "add/add" | "list" | "type";

export interface ModelClaim {
  readonly source: number;
  readonly kind: Kind;
  readonly base: Maybe;
  readonly baseKnown: boolean;
  readonly theirs: Maybe;
}

export interface ModelContest {
  readonly path: readonly string[];
  readonly ours: Maybe;
  readonly claims: readonly ModelClaim[];
}

/** A value to merge, its base, and the paths at which that base is not known. */
export interface ModelSource {
  readonly base: Maybe;
  readonly unknown?: readonly (readonly string[])[];
  readonly theirs: Maybe;
}

export interface ModelAnswer {
  readonly take?: "ours" | "theirs";
  readonly value?: unknown;
  readonly delete?: true;
}
export type ModelResolver = (values: {
  path: readonly string[];
  base: Maybe;
  ours: Maybe;
  theirs: Maybe;
}) => ModelAnswer | undefined;

export const pathKey = (path: readonly string[]): string => JSON.stringify(path);

/** JSON with sorted keys: equal texts are equal values. */
export function canon(value: Maybe): string {
  if (value === undefined) return "absent";
  if (Array.isArray(value)) return `[${value.map(canon).join(",")}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canon(value[key])}`).join(",")}}`;
}

export const equal = (a: Maybe, b: Maybe): boolean => a === b || canon(a) === canon(b);

export function isObject(value: Maybe): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
const isList = (value: Maybe): value is readonly JsonValue[] => Array.isArray(value);
const isText = (value: Maybe): value is string => typeof value === "string";

export function member(object: Maybe, key: string): Maybe {
  return isObject(object) && Object.hasOwn(object, key) ? object[key] : undefined;
}

/** Where two values differ, and how, for a reader of a failure. */
export function differences(found: Maybe, expected: Maybe, path = ""): string[] {
  if (equal(found, expected)) return [];
  if (isObject(found) && isObject(expected)) {
    const keys = [...new Set([...Object.keys(found), ...Object.keys(expected)])];
    return keys.flatMap((key) =>
      differences(member(found, key), member(expected, key), `${path}/${key}`),
    );
  }
  return [`${path}: ${canon(found).slice(0, 400)} instead of ${canon(expected).slice(0, 400)}`];
}

/** What is left of a policy below a path; `rank` is smaller the better it fits. */
interface Rule {
  readonly rank: string;
  readonly rest: readonly string[];
  readonly strategy: string;
}

function step(rules: readonly Rule[], key: string | null): Rule[] {
  return rules.flatMap(({ rank, rest: [head, ...rest], strategy }) => {
    if (head === "*") return [{ rank: `${rank}1`, rest, strategy }];
    return head !== undefined && head === key ? [{ rank: `${rank}0`, rest, strategy }] : [];
  });
}

function strategyOf(rules: readonly Rule[]): string | undefined {
  const here = rules.filter(({ rest }) => rest.length === 0);
  return here.sort((a, b) => (a.rank < b.rank ? -1 : 1))[0]?.strategy;
}

interface Place extends ModelSource {
  readonly path: readonly string[];
  readonly rules: readonly Rule[];
  readonly unknown: readonly (readonly string[])[];
  readonly ours: Maybe;
}

/**
 * The merge as DESIGN 5 tells it, over whole JSON values: no ids, no shortcuts,
 * nothing of the engine. It is what the engine is held against.
 */
export class MergeModel {
  readonly contests = new Map<string, ModelContest>();
  /** Whether what was added behind a list depends on how the lists are aligned; the result is then one of several. */
  ambiguous = false;
  private readonly sources: ModelSource[] = [];
  private readonly rules: readonly Rule[];

  constructor(
    policies: Readonly<Record<string, string>>,
    private readonly resolvers: Readonly<Record<string, ModelResolver>> = {},
    /** What contested paths are to hold, by {@link pathKey}; ours where there is nothing. */
    private readonly settled: ReadonlyMap<string, Maybe> = new Map(),
  ) {
    this.rules = Object.entries(policies).map(([pointer, strategy]) => {
      const tokens = pointer.split("/").slice(1);
      const rest = tokens.map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
      return { rank: "", rest, strategy };
    });
  }

  merge(ours: Maybe, source: ModelSource): Maybe {
    this.sources.push(source);
    return this.at({ path: [], rules: this.rules, unknown: [], ...source, ours });
  }

  private at(place: Place): Maybe {
    const { path, base, ours, theirs, unknown } = place;
    const noBase = unknown.some((marked) => marked.length === 0);
    const known = unknown.length === 0;
    if (known && equal(base, theirs)) return ours;
    const contest = this.contests.get(pathKey(path));
    if (contest !== undefined) {
      if (!equal(contest.ours, theirs))
        this.contest(path, contest.ours, [...contest.claims, this.claim(place, contest.ours)]);
      return ours;
    }
    if (this.below(path).length > 0) {
      const parts = this.byParts(place);
      return parts === undefined ? this.lift(place) : parts.value;
    }
    if (equal(ours, theirs) && (ours === undefined || noBase)) return ours;
    if (known && equal(base, ours)) return theirs;
    return this.bothChanged(place, known);
  }

  /** Both sides changed the value, be it to the same. */
  private bothChanged(place: Place, known: boolean): Maybe {
    const { path, rules, base, ours, theirs } = place;
    const strategy = strategyOf(rules);
    const [name, argument] = splitOnce(strategy ?? "");
    const present = [base, ours, theirs].filter((value) => value !== undefined);
    if (name === "by-id" || name === "") {
      const parts = this.byParts(place);
      if (parts !== undefined) return parts.value;
    }
    const sums = name === "sum" && present.every((value) => typeof value === "number");
    const appends =
      name === "append" &&
      (present.every((value) => isList(value)) || present.every((value) => isText(value)));
    if (equal(ours, theirs) && !sums && !appends) return ours;
    if (name === "ours") return ours;
    if (name === "theirs") return theirs;
    if (name === "custom") {
      const answer = this.resolvers[argument]?.({
        path,
        base: known ? base : undefined,
        ours,
        theirs,
      });
      if (answer === undefined) return this.conflict(place);
      if (answer.take !== undefined) return answer.take === "ours" ? ours : theirs;
      return answer.delete === true ? undefined : (answer.value as JsonValue);
    }
    if (ours === undefined || theirs === undefined || name === "manual")
      return this.conflict(place);
    if (name === "max" || name === "min") {
      const order = compare(ours, theirs);
      if (order === undefined) return this.conflict(place);
      return (name === "max") === order > 0 ? ours : theirs;
    }
    if (!known) return equal(ours, theirs) ? ours : this.conflict(place);
    if (sums) return sum(base, ours, theirs) ?? this.conflict(place);
    if (appends) return isText(ours) ? this.appendText(place) : this.appendList(place);
    if (name === "union" && present.every((value) => isList(value)))
      return union(base, ours, theirs);
    if (name === "" && isList(base) && isList(ours) && isList(theirs)) {
      const [o, t] = [ours.slice(0, base.length), theirs.slice(0, base.length)];
      if (equal(o, base) && equal(t, base)) return [...ours, ...theirs.slice(base.length)];
    }
    return this.conflict(place);
  }

  // --- Parts -----------------------------------------------------------------

  private byParts(place: Place): { value: Maybe } | undefined {
    const { base, ours, theirs, unknown, rules } = place;
    if (unknown.some((marked) => marked.length === 0)) return undefined;
    const present = [ours, theirs, ...(base === undefined ? [] : [base])];
    if (present.every((value) => isObject(value))) {
      const value = new Map(Object.entries(ours as JsonObject));
      // A member may be in none of them and yet be contested, or have a base that is not known.
      const marked = [
        ...unknown.map(([key]) => key),
        ...this.below(place.path).map(({ path }) => path[place.path.length]),
      ];
      const keys = [
        ...marked,
        ...present.flatMap((object) => Object.keys(object as JsonObject)),
      ] as string[];
      for (const key of [...new Set(keys)].sort()) {
        const merged = this.child(
          place,
          key,
          step(rules, key),
          [base, ours, theirs].map((side) => member(side, key)),
        );
        if (merged === undefined) value.delete(key);
        else value.set(key, merged);
      }
      return { value: Object.fromEntries(value) };
    }
    const [name, key] = splitOnce(strategyOf(rules) ?? "");
    if (name !== "by-id" || !present.every((value) => isList(value))) return undefined;
    return { value: this.byId(place, key) };
  }

  private child(place: Place, token: string, rules: readonly Rule[], sides: Maybe[]): Maybe {
    const [base, ours, theirs] = sides;
    const unknown = place.unknown
      .filter(([head]) => head === token)
      .map((marked) => marked.slice(1));
    return this.at({ path: [...place.path, token], rules, unknown, base, ours, theirs });
  }

  private byId(place: Place, key: string): Maybe {
    const lists = [place.base ?? [], place.ours, place.theirs].map((list) =>
      identified(list as JsonValue[], key),
    );
    if (lists.includes(null)) return this.lift(place);
    const [base, ours, theirs] = lists as Map<string, JsonValue>[] as [
      Map<string, JsonValue>,
      Map<string, JsonValue>,
      Map<string, JsonValue>,
    ];
    const merged = new Map<string, JsonValue>();
    const marked = [
      ...place.unknown.map(([token]) => token),
      ...this.below(place.path).map(({ path }) => path[place.path.length]),
    ] as string[];
    for (const token of new Set([...ours.keys(), ...theirs.keys(), ...base.keys(), ...marked])) {
      const value = this.child(
        place,
        token,
        step(place.rules, null),
        [base, ours, theirs].map((list) => list.get(token)),
      );
      if (value !== undefined) merged.set(token, value);
    }
    const common = (list: Map<string, JsonValue>, ...others: Map<string, JsonValue>[]) =>
      [...list.keys()].filter((token) => others.every((other) => other.has(token))).join("\n");
    const old = common(base, ours, theirs);
    const oursMoved = common(ours, base, theirs) !== old;
    const theirsMoved = common(theirs, base, ours) !== old;
    if (oursMoved && theirsMoved && common(ours, theirs) !== common(theirs, ours))
      return this.lift(place);
    const order =
      theirsMoved && !oursMoved
        ? interleave(theirs, ours, () => true)
        : interleave(ours, theirs, (token) => theirs.has(token));
    return order
      .filter((token) => merged.has(token))
      .map((token) => merged.get(token) as JsonValue);
  }

  // --- Lists and texts -------------------------------------------------------

  private appendList(place: Place): Maybe {
    const base = (place.base ?? []) as readonly JsonValue[];
    const ours = place.ours as readonly JsonValue[];
    const theirs = place.theirs as readonly JsonValue[];
    const [o, t] = [this.change(base, ours), this.change(base, theirs)];
    const [before, after] = [
      ours.slice(0, ours.length - o.added),
      theirs.slice(0, theirs.length - t.added),
    ];
    const [first, second] = [ours.slice(before.length), theirs.slice(after.length)];
    if (o.inner && t.inner && !equal(before, after)) return this.conflict(place);
    return [...(t.inner ? after : before), ...first, ...second];
  }

  /** What became of a list whose elements are all different and in their old order. */
  private change(
    before: readonly JsonValue[],
    after: readonly JsonValue[],
  ): { inner: boolean; added: number } {
    if (equal(after.slice(0, before.length), before))
      return { inner: false, added: after.length - before.length };
    const [old, now] = [before.map(canon), after.map(canon)];
    const stayed = (list: string[], other: string[]) =>
      list.filter((x) => other.includes(x)).join("\n");
    const twice = (list: string[]) => new Set(list).size < list.length;
    if (twice(old) || twice(now) || stayed(old, now) !== stayed(now, old)) this.ambiguous = true;
    const last = now.indexOf(old.at(-1) as string);
    return { inner: true, added: last < 0 ? 0 : now.length - 1 - last };
  }

  private appendText(place: Place): Maybe {
    const base = (place.base ?? "") as string;
    const ours = place.ours as string;
    const theirs = place.theirs as string;
    if (theirs.startsWith(base)) return ours + theirs.slice(base.length);
    if (ours.startsWith(base)) return theirs + ours.slice(base.length);
    return ours === theirs ? ours : this.conflict(place);
  }

  // --- Contests --------------------------------------------------------------

  private below(path: readonly string[]): ModelContest[] {
    return [...this.contests.values()].filter(
      (contest) =>
        contest.path.length > path.length && equal(contest.path.slice(0, path.length), [...path]),
    );
  }

  private conflict({ path, ours, ...place }: Place): Maybe {
    this.contest(path, ours, [this.claim(place, ours)]);
    return this.standing(path, ours);
  }

  /** What stands at a contested path. */
  private standing(path: readonly string[], ours: Maybe): Maybe {
    return this.settled.has(pathKey(path)) ? this.settled.get(pathKey(path)) : ours;
  }

  private contest(path: readonly string[], ours: Maybe, claims: readonly ModelClaim[]): void {
    this.contests.set(pathKey(path), { path, ours, claims });
  }

  private claim(
    place: Pick<Place, "base" | "unknown" | "theirs">,
    ours: Maybe,
    source = this.sources.length - 1,
  ): ModelClaim {
    const baseKnown = place.unknown.length === 0;
    const base = baseKnown ? place.base : undefined;
    return {
      source,
      kind: kindOf(base, baseKnown, ours, place.theirs),
      base,
      baseKnown,
      theirs: place.theirs,
    };
  }

  /** One contest of all below, with a claim of each source that had one there. */
  private lift(place: Place): Maybe {
    const { path, ours, theirs } = place;
    const below = this.below(path);
    if (equal(ours, theirs)) return ours;
    const now = this.sources.length - 1;
    const earlier = new Set(below.flatMap(({ claims }) => claims.map(({ source }) => source)));
    for (const contest of below) this.contests.delete(pathKey(contest.path));
    const claims = [...earlier]
      .filter((source) => source !== now)
      .sort((a, b) => a - b)
      .map((index) => {
        const source = this.sources[index] as ModelSource;
        const unknown = (source.unknown ?? [])
          .filter((marked) => equal(marked.slice(0, path.length), [...path]))
          .map((marked) => marked.slice(path.length));
        const sides = { base: find(source.base, path), unknown, theirs: find(source.theirs, path) };
        return this.claim(sides, ours, index);
      });
    this.contest(path, ours, [...claims, this.claim(place, ours)]);
    return this.standing(path, ours);
  }
}

function splitOnce(strategy: string): [string, string] {
  const at = strategy.indexOf(":");
  return at < 0 ? [strategy, ""] : [strategy.slice(0, at), strategy.slice(at + 1)];
}

function typeOf(value: JsonValue): string {
  return value === null ? "null" : isList(value) ? "list" : typeof value;
}

/** What a conflict is called, by its values alone. */
export function kindOf(base: Maybe, baseKnown: boolean, ours: Maybe, theirs: Maybe): Kind {
  if (ours === undefined || theirs === undefined) return "edit/delete";
  if (base === undefined && baseKnown) return "add/add";
  if (typeOf(ours) !== typeOf(theirs)) return "type";
  return isList(base) && isList(ours) ? "list" : "edit/edit";
}

function compare(a: JsonValue, b: JsonValue): number | undefined {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (!isText(a) || !isText(b)) return undefined;
  const [x, y] = [[...a], [...b]].map((text) => text.map((c) => c.codePointAt(0) as number)) as [
    number[],
    number[],
  ];
  for (let i = 0; i < x.length && i < y.length; i++)
    if (x[i] !== y[i]) return (x[i] as number) - (y[i] as number);
  return x.length - y.length;
}

function sum(base: Maybe, ours: JsonValue, theirs: JsonValue): number | undefined {
  const values = [base ?? 0, ours, theirs] as number[];
  if (!values.every(Number.isSafeInteger)) return undefined;
  const [b, o, t] = values.map(BigInt) as [bigint, bigint, bigint];
  const result = Number(o + t - b);
  return Number.isSafeInteger(result) ? result : undefined;
}

function union(base: Maybe, ours: Maybe, theirs: Maybe): JsonValue {
  const texts = (list: Maybe) => ((list ?? []) as JsonValue[]).map(canon);
  const [b, o, t] = [texts(base), texts(ours), texts(theirs)];
  const stays = o.filter((x) => !b.includes(x) || t.includes(x));
  const added = t.filter((x) => !b.includes(x) && !o.includes(x));
  return [...new Set([...stays, ...added])].map((text) => JSON.parse(text) as JsonValue);
}

/** The elements of a list by the token that names them; null when they cannot be told apart so. */
function identified(list: readonly JsonValue[], key: string): Map<string, JsonValue> | null {
  const elements = new Map<string, JsonValue>();
  for (const element of list) {
    const id = member(element, key);
    if (typeof id !== "string" && typeof id !== "number") return null;
    const token = `${key}=${JSON.stringify(id)}`;
    if (elements.has(token)) return null;
    elements.set(token, element);
  }
  return elements;
}

/** Puts what only `other` has behind what it follows there, and what only `list` has next before it where `stop` says. */
function interleave(
  list: ReadonlyMap<string, JsonValue>,
  other: ReadonlyMap<string, JsonValue>,
  stop: (token: string) => boolean,
): string[] {
  const tokens = [...list.keys()];
  const slots: string[][] = Array.from({ length: tokens.length + 1 }, () => []);
  const place = (from: number) => {
    let at = from;
    while (at < tokens.length && !stop(tokens[at] as string)) at++;
    return at;
  };
  let at = place(0);
  for (const token of other.keys()) {
    if (list.has(token)) at = place(tokens.indexOf(token) + 1);
    else slots[at]?.push(token);
  }
  return slots.flatMap((added, i) => [...added, ...tokens.slice(i, i + 1)]);
}

/** What stands at a path; elements of lists are named by a member, as `id="a7"`. */
export function find(value: Maybe, path: readonly string[]): Maybe {
  let at = value;
  for (const token of path) {
    if (isList(at)) {
      at = at.find(
        (element) =>
          isObject(element) &&
          Object.keys(element).some((key) => token === `${key}=${JSON.stringify(element[key])}`),
      );
    } else at = member(at, token);
  }
  return at;
}
