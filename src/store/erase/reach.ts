import type { ObjectId } from "../../core/ids.js";
import { type LoadedCommit, ROOT_PARTS, type RootPart } from "../../objects/commit-reader.js";
import { unescapeKey } from "../../objects/keys.js";
import type { ObjectReader } from "../../objects/reader.js";
import { readNode } from "../../objects/sequence.js";
import type { Link } from "../../objects/tree.js";
import { treeKind } from "../../objects/tree-kind.js";
import type { Found } from "./found.js";
import { belowIndex, belowKey, endsHere, type PartPaths, type Paths } from "./paths.js";

/** How many trees one call reads. */
const BATCH = 1000;

/** Tells whether values hold any of the objects that are found; what was seen to hold none is not looked at again. */
export class Touching {
  readonly #clean = new Set<ObjectId>();

  constructor(private readonly found: Found) {}

  async touches(reader: ObjectReader, link: Link): Promise<boolean> {
    const met = new Set<ObjectId>();
    let open: Link[] = [link];
    while (open.length > 0) {
      const trees: ObjectId[] = [];
      for (const { id, type } of open) {
        if (this.found.has(id)) return true;
        if (met.has(id) || this.#clean.has(id)) continue;
        met.add(id);
        if (type === "tree") trees.push(id);
      }
      open = [];
      for (let at = 0; at < trees.length; at += BATCH) {
        for (const tree of await reader.readAll(trees.slice(at, at + BATCH))) {
          if (tree.type === "tree") open.push(...tree.entries);
        }
      }
    }
    for (const id of met) this.#clean.add(id);
    return false;
  }
}

/** Collects the objects that commits' own values reach: not their parents'. */
export class Living {
  readonly #objects = new Set<ObjectId>();
  readonly #met = new Set<string>();

  constructor(private readonly reader: ObjectReader) {}

  has(id: ObjectId): boolean {
    return this.#objects.has(id);
  }

  /** @param except what stands at these paths does not count, unless it is reached otherwise */
  async add(
    commit: LoadedCommit,
    parts: readonly RootPart[] = ROOT_PARTS,
    except: PartPaths = new Map(),
  ): Promise<void> {
    const reader = this.reader.with(commit.inline);
    let open: { link: Link; paths: Paths }[] = parts.flatMap((part) => {
      const link = commit.root[part];
      return link === undefined ? [] : [{ link, paths: except.get(part) ?? [] }];
    });
    while (open.length > 0) {
      const trees: { id: ObjectId; paths: Paths }[] = [];
      for (const { link, paths } of open) {
        const name = `${link.id} ${paths.map(({ id }) => id).join()}`;
        if (endsHere(paths) || this.#met.has(name)) continue;
        this.#met.add(name);
        this.#objects.add(link.id);
        if (link.type === "tree") trees.push({ id: link.id, paths });
      }
      open = [];
      for (let at = 0; at < trees.length; at += BATCH) {
        const batch = trees.slice(at, at + BATCH);
        const objects = await reader.readAll(batch.map(({ id }) => id));
        for (const [i, { id, paths }] of batch.entries()) {
          const object = objects[i];
          if (object?.type !== "tree") continue;
          if (treeKind(object.entries) === "list" && paths.length > 0) {
            let index = 0;
            for (const entry of readNode(object.entries, id)) {
              const at = entry.kind === "e" ? belowIndex(paths, index) : paths;
              open.push({ link: entry, paths: at });
              index += entry.count;
            }
            continue;
          }
          for (const entry of object.entries) {
            const below = entry.name[0] === "{" ? paths : belowKey(paths, unescapeKey(entry.name));
            open.push({ link: entry, paths: paths.length === 0 ? [] : below });
          }
        }
      }
    }
  }
}
