import type { JsonValue } from "../../src/index.js";
import { gitBytes } from "./git.js";

interface GitEntry {
  readonly name: string;
  readonly type: string;
  readonly id: string;
}

/**
 * Reads values out of a repository by git alone: written from the description
 * of the format, it shares no code with the decoder that it is held against.
 */
export class GitValues {
  readonly #objects = new Map<string, { type: string; body: Buffer }>();

  constructor(directory: string) {
    const args = ["cat-file", "--batch-all-objects", "--batch", "--unordered"];
    const output = gitBytes(directory, args);
    for (let at = 0; at < output.length; ) {
      const end = output.indexOf("\n", at);
      const [id, type, size] = output.toString("utf8", at, end).split(" ");
      const body = output.subarray(end + 1, end + 1 + Number(size));
      this.#objects.set(id!, { type: type!, body });
      at = end + 2 + Number(size);
    }
  }

  /** The bytes of an object. */
  body(id: string): Buffer {
    return this.#objects.get(id)!.body;
  }

  /** A part of a commit's root tree; undefined when it has none of this name. */
  part(commit: string, name: string): JsonValue | undefined {
    const tree = this.body(commit).toString("utf8").slice("tree ".length, 69);
    const entry = this.#entries(tree).find((e) => e.name === name);
    return entry && this.#value(entry);
  }

  #entries(id: string): GitEntry[] {
    const { body } = this.#objects.get(id)!;
    const entries: GitEntry[] = [];
    for (let at = 0; at < body.length; ) {
      const nul = body.indexOf(0, at);
      const [mode, ...name] = body.toString("utf8", at, nul).split(" ");
      const end = nul + 33;
      const type = mode === "40000" ? "tree" : "blob";
      entries.push({ name: name.join(" "), type, id: body.toString("hex", nul + 1, end) });
      at = end;
    }
    return entries;
  }

  #value({ type, id }: GitEntry): JsonValue {
    if (type === "blob") return JSON.parse(this.body(id).toString("utf8")) as JsonValue;
    const entries = this.#entries(id);
    const mark = entries[0]?.name[0];
    if (mark === "[") return this.#list(entries);
    if (mark === '"') return this.#text(entries);
    return Object.fromEntries(this.#members(entries));
  }

  #list(entries: GitEntry[]): JsonValue[] {
    return entries.flatMap((entry) => {
      const kind = entry.name[3];
      if (kind === "n") return this.#list(this.#entries(entry.id));
      return kind === "r" ? (this.#value(entry) as JsonValue[]) : [this.#value(entry)];
    });
  }

  #text(entries: GitEntry[]): string {
    return entries
      .map((entry) =>
        entry.type === "tree"
          ? this.#text(this.#entries(entry.id))
          : this.body(entry.id).toString(),
      )
      .join("");
  }

  #members(entries: GitEntry[]): [key: string, value: JsonValue][] {
    return entries.flatMap((entry): [string, JsonValue][] => {
      if (entry.name.startsWith("{")) return this.#members(this.#entries(entry.id));
      const key = entry.name === "%" ? "" : decodeURIComponent(entry.name);
      return [[key, this.#value(entry)]];
    });
  }
}
