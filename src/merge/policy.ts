import { AgstateError } from "../core/errors.js";
import { isJsonObject, type JsonValue } from "../core/json.js";
import { formatPointer, parsePointer } from "../core/json-pointer.js";
import { isOneLine, quoteForMessage } from "../core/names.js";

/**
 * How a value that both sides changed is merged.
 *
 * - `ours`, `theirs`: the whole value of one side.
 * - `append`: lists and texts keep what each side added at the end, ours first, and what one side
 *   changed before that; equal additions are two additions.
 * - `union`: lists as sets: what either side added, less what either removed.
 * - `by-id:<key>`: lists of objects merge element by element, found by the member `key`.
 * - `sum`: whole numbers add up what each side added; equal additions are two additions.
 * - `max`, `min`: the greater, the lesser of two numbers or two strings.
 * - `manual`: always a conflict.
 * - `custom:<name>`: a resolver that the caller registered under this name.
 */
export type Strategy =
  | "ours"
  | "theirs"
  | "append"
  | "union"
  | "sum"
  | "max"
  | "min"
  | "manual"
  | `by-id:${string}`
  | `custom:${string}`;

/** Merge policies: a JSON Pointer, in which `*` stands for any one key or list element, and its strategy. */
export type Policies = Readonly<Record<string, Strategy>>;

const SIMPLE = ["ours", "theirs", "append", "union", "sum", "max", "min", "manual"] as const;
const ARGUMENT_MAX_BYTES = 200;

/** @throws AgstateError `INVALID_POLICY` */
export function checkStrategy(strategy: unknown): Strategy {
  if ((SIMPLE as readonly unknown[]).includes(strategy)) return strategy as Strategy;
  if (typeof strategy === "string") {
    const match = /^(by-id|custom):(.+)$/su.exec(strategy);
    const argument = match?.[2] ?? "";
    if (
      match !== null &&
      isOneLine(argument) &&
      Buffer.byteLength(argument) <= ARGUMENT_MAX_BYTES
    ) {
      return strategy as Strategy;
    }
  }
  throw new AgstateError(
    "INVALID_POLICY",
    `there is no merge strategy ${quoteForMessage(String(strategy))}; there are ${SIMPLE.join(", ")}, by-id:KEY and custom:NAME (KEY and NAME: one line of at most ${ARGUMENT_MAX_BYTES} bytes)`,
    { strategy: String(strategy) },
  );
}

/**
 * Reads policies as they stand in a commit or in a call.
 *
 * @throws AgstateError `INVALID_POLICY`, `INVALID_PATH`
 */
export function checkPolicies(given: unknown): Policies {
  if (!isJsonObject(given)) {
    throw new AgstateError(
      "INVALID_POLICY",
      'merge policies are an object of paths and strategies, such as {"/messages": "append"}',
    );
  }
  const policies: [string, Strategy][] = [];
  for (const [path, strategy] of Object.entries(given)) {
    // Written one way only, so that one path never has two policies.
    policies.push([formatPointer(parsePointer(path)), checkStrategy(strategy)]);
  }
  policies.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return Object.fromEntries(policies) as Policies;
}

/** Policies as the JSON value that a commit holds. */
export function policiesToJson(policies: Policies): JsonValue {
  return policies as { readonly [path: string]: string };
}

interface Node {
  strategy: Strategy | undefined;
  /** Whether a strategy at or below counts equal changes twice. */
  accumulates: boolean;
  readonly children: Map<string, Node>;
}

function newNode(): Node {
  return { strategy: undefined, accumulates: false, children: new Map() };
}

/**
 * The policies for a value and everything below it.
 *
 * Where several patterns match a path, a key that is named counts more than
 * `*`, the first such difference from the root deciding.
 */
export class PolicyScope {
  /** Best match first. */
  private constructor(private readonly nodes: readonly Node[]) {}

  static readonly none = new PolicyScope([]);

  static of(policies: Policies): PolicyScope {
    const root = newNode();
    for (const [path, strategy] of Object.entries(policies)) {
      const accumulates = strategy === "sum" || strategy === "append";
      let node = root;
      node.accumulates ||= accumulates;
      for (const token of parsePointer(path)) {
        let next = node.children.get(token);
        if (next === undefined) {
          next = newNode();
          node.children.set(token, next);
        }
        node = next;
        node.accumulates ||= accumulates;
      }
      node.strategy = strategy;
    }
    return new PolicyScope([root]);
  }

  get strategy(): Strategy | undefined {
    return this.nodes.find((node) => node.strategy !== undefined)?.strategy;
  }

  ofKey(key: string): PolicyScope {
    return this.step(key === "*" ? ["*"] : [key, "*"]);
  }

  /** Elements of lists are matched by `*` only. */
  ofElement(): PolicyScope {
    return this.step(["*"]);
  }

  private step(tokens: readonly string[]): PolicyScope {
    if (this.nodes.length === 0) return this;
    const next: Node[] = [];
    for (const node of this.nodes) {
      for (const token of tokens) {
        const child = node.children.get(token);
        if (child !== undefined) next.push(child);
      }
    }
    return next.length === 0 ? PolicyScope.none : new PolicyScope(next);
  }

  /**
   * Whether two equal changes at or below may be two changes that both count
   * (`sum`, `append`), so that equal sides do not settle the merge.
   */
  get accumulates(): boolean {
    return this.nodes.some((node) => node.accumulates);
  }
}
