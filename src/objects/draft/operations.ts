import { AgstateError } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import { formatPointer, parseIndex, parsePointer } from "../../core/json-pointer.js";
import { quoteForMessage } from "../../core/names.js";
import { isWithheld } from "../../core/withheld.js";
import { checkKey, normalize, normalizeAll } from "../normalize.js";
import { refuseWithheld } from "../reader.js";
import { type AnyDraft, unfold } from "./draft.js";
import type { ListDraft } from "./list-draft.js";
import type { ObjectDraft } from "./object-draft.js";
import { type Draft, type DraftContext, LeafDraft } from "./types.js";

/**
 * An edit of a state by JSON Pointer.
 *
 * - `set` puts a value at a key, at an existing index, or, with the last token
 *   `-`, behind a list's end.
 * - `delete` removes a key or a list element.
 * - `append` adds elements to a list; a missing key becomes a list.
 * - `splice` removes `deleteCount` elements (default 0) at `index` and puts `values` there.
 * - `text-append` adds to a string; a missing key becomes a string.
 *
 * Keys above the last token must exist. `values` and `value` may be any JSON.
 */
export type StateOperation =
  | { readonly op: "set"; readonly path: string; readonly value: unknown }
  | { readonly op: "delete"; readonly path: string }
  | { readonly op: "append"; readonly path: string; readonly value: unknown }
  | { readonly op: "append"; readonly path: string; readonly values: readonly unknown[] }
  | {
      readonly op: "splice";
      readonly path: string;
      readonly index: number;
      readonly deleteCount?: number;
      readonly values?: readonly unknown[];
    }
  | { readonly op: "text-append"; readonly path: string; readonly text: string };

/**
 * Applies operations in order; all or, when one throws, none.
 *
 * @returns the draft of the new value; null when the whole value was deleted
 * @throws AgstateError `PATH_NOT_FOUND`, `INVALID_PATH`, `INVALID_VALUE`, `INVALID_ARGUMENT`, `LIMIT_EXCEEDED`
 */
export async function applyOperations(
  context: DraftContext,
  draft: Draft | null,
  operations: readonly StateOperation[],
  maxBytes: number,
): Promise<Draft | null> {
  let current = draft;
  for (const operation of operations) {
    const step = new Step(context, operation, maxBytes);
    current = await step.apply(current);
  }
  return current;
}

class Step {
  private readonly tokens: readonly string[];

  constructor(
    private readonly context: DraftContext,
    private readonly operation: StateOperation,
    private readonly maxBytes: number,
  ) {
    if (!["set", "delete", "append", "splice", "text-append"].includes(operation?.op)) {
      throw new AgstateError(
        "INVALID_ARGUMENT",
        `there is no operation ${quoteForMessage(String(operation?.op))}; there are set, delete, append, splice and text-append`,
      );
    }
    this.tokens = parsePointer(operation.path);
  }

  async apply(root: Draft | null): Promise<Draft | null> {
    if (this.tokens.length === 0) return this.terminal(root);
    if (root === null) throw this.notFound(0);
    // Down to the container of the last token, remembering how to put children back.
    let container = unfold(this.context, root);
    const top = container;
    for (let depth = 0; depth < this.tokens.length - 1; depth++) {
      const child = unfold(this.context, await this.open(container, depth));
      this.put(container, depth, child);
      container = child;
    }
    await this.finish(container, this.tokens.length - 1);
    return top;
  }

  /** Opens the child that a token names. */
  private async open(container: AnyDraft, depth: number): Promise<Draft> {
    const token = this.tokens[depth] as string;
    if (container.kind === "object") {
      const child = await container.open(token);
      if (child !== undefined) return child;
    } else if (container.kind === "list") {
      return container.open(this.index(container, depth));
    }
    throw this.nothingBelow(container, depth);
  }

  private put(container: AnyDraft, depth: number, child: Draft): void {
    const token = this.tokens[depth] as string;
    if (container.kind === "object") container.set(token, child);
    else if (container.kind === "list") container.replace(Number(token), child);
  }

  /** Applies the operation to the child that the last token names. */
  private async finish(container: AnyDraft, depth: number): Promise<void> {
    if (container.kind === "object") return this.finishMember(container, depth);
    if (container.kind === "list") return this.finishElement(container, depth);
    throw this.nothingBelow(container, depth);
  }

  private nothingBelow(container: AnyDraft, depth: number): AgstateError {
    const value: unknown = container.kind === "leaf" ? container.value : undefined;
    return isWithheld(value) ? refuseWithheld(value) : this.notFound(depth);
  }

  private async finishMember(container: ObjectDraft, depth: number): Promise<void> {
    const key = this.tokens[depth] as string;
    const { op } = this.operation;
    if (op !== "delete" && op !== "splice") checkKey(key, "state", this.tokens.slice(0, depth));
    if (op === "set") {
      container.set(key, (await this.terminal(null)) as Draft);
      return;
    }
    if (op === "delete") {
      if (!(await container.has(key))) throw this.notFound(depth);
      container.delete(key);
      return;
    }
    const child = await container.open(key);
    if (child === undefined && op === "splice") throw this.notFound(depth);
    container.set(key, (await this.terminal(child ?? null)) as Draft);
  }

  private async finishElement(container: ListDraft, depth: number): Promise<void> {
    const { op } = this.operation;
    if (op === "set" && this.tokens[depth] === "-") {
      container.splice(container.length, 0, [this.normal(this.operation.value)]);
      return;
    }
    const index = this.index(container, depth);
    if (op === "delete") {
      container.splice(index, 1, []);
      return;
    }
    const child = op === "set" ? null : await container.open(index);
    container.replace(index, (await this.terminal(child)) as Draft);
  }

  /** The operation on the very value that the path names; null stands for a missing one. */
  private async terminal(target: Draft | null): Promise<Draft | null> {
    const operation = this.operation;
    switch (operation.op) {
      case "set":
        return new LeafDraft(this.context, this.normal(operation.value));
      case "delete":
        if (target === null) throw this.notFound(0);
        return null;
      case "append": {
        const list = this.list(target ?? new LeafDraft(this.context, []));
        const values = "values" in operation ? operation.values : [operation.value];
        list.splice(list.length, 0, this.normalValues(values));
        return list;
      }
      case "splice":
        return this.splice(target);
      case "text-append": {
        if (typeof operation.text !== "string") throw this.badArgument("text", "a string");
        const text = unfold(this.context, target ?? new LeafDraft(this.context, ""));
        if (text.kind !== "text") throw this.wrongKind("a string");
        const more = this.normal(operation.text) as string;
        if (text.length + more.length > this.maxBytes)
          throw this.textTooLong(text.length + more.length);
        text.splice(text.length, 0, more);
        return text;
      }
    }
  }

  private splice(target: Draft | null): ListDraft {
    const operation = this.operation as Extract<StateOperation, { op: "splice" }>;
    if (target === null) throw this.notFound(this.tokens.length - 1);
    const list = this.list(target);
    const { index, deleteCount = 0, values = [] } = operation;
    const fits = (n: number, max: number) => Number.isSafeInteger(n) && n >= 0 && n <= max;
    if (!fits(index, list.length)) {
      throw this.badArgument("index", `a whole number from 0 to ${list.length}, the list's length`);
    }
    if (!fits(deleteCount, list.length - index)) {
      throw this.badArgument(
        "deleteCount",
        `a whole number from 0 to ${list.length - index}, what is left of the list`,
      );
    }
    list.splice(index, deleteCount, this.normalValues(values));
    return list;
  }

  private list(draft: Draft): ListDraft {
    const open = unfold(this.context, draft);
    if (open.kind !== "list") throw this.wrongKind("a list");
    return open;
  }

  private normal(value: unknown): JsonValue {
    return normalize(value, { maxBytes: this.maxBytes, at: this.tokens });
  }

  /** New elements, their bytes counted together. */
  private normalValues(values: unknown): readonly JsonValue[] {
    if (!Array.isArray(values)) throw this.badArgument("values", "an array");
    return normalizeAll(values, { maxBytes: this.maxBytes, at: [...this.tokens, "-"] });
  }

  private textTooLong(length: number): AgstateError {
    const path = formatPointer(this.tokens);
    return new AgstateError(
      "LIMIT_EXCEEDED",
      `the text at ${quoteForMessage(path)} would have ${length} characters; the limit stateMaxBytes is ${this.maxBytes}`,
      { path, size: length, limit: this.maxBytes },
    );
  }

  private index(list: ListDraft, depth: number): number {
    const index = parseIndex(this.tokens[depth] as string);
    if (index === undefined || index >= list.length) throw this.notFound(depth);
    return index;
  }

  private notFound(depth: number): AgstateError {
    const path = formatPointer(this.tokens);
    const missing = formatPointer(this.tokens.slice(0, depth + 1));
    return new AgstateError(
      "PATH_NOT_FOUND",
      `cannot ${this.operation.op} ${quoteForMessage(path)}: there is no value at ${quoteForMessage(missing)}`,
      { path, missing, op: this.operation.op },
    );
  }

  private wrongKind(wanted: string): AgstateError {
    const path = formatPointer(this.tokens);
    return new AgstateError(
      "INVALID_ARGUMENT",
      `cannot ${this.operation.op} at ${quoteForMessage(path)}: the value there is not ${wanted}`,
      { path, op: this.operation.op },
    );
  }

  private badArgument(name: string, wanted: string): AgstateError {
    return new AgstateError(
      "INVALID_ARGUMENT",
      `${name} of ${this.operation.op} at ${quoteForMessage(formatPointer(this.tokens))} must be ${wanted}`,
      { path: formatPointer(this.tokens), op: this.operation.op, argument: name },
    );
  }
}
