import { isAgstateError } from "../../core/errors.js";
import type { ObjectId } from "../../core/ids.js";
import { loadCommit } from "../../objects/commit-reader.js";
import { decodeValue } from "../../objects/decode.js";
import { createObjectCache, ObjectReader } from "../../objects/reader.js";
import type { Storage } from "../../storage/port.js";
import { stringsOf } from "../guard/texts.js";

/** Only what a state of this size holds is looked for. */
const CACHE_MAX_BYTES = 8 * 1024 * 1024;

/** The texts that a workflow's region has already, where a write seems to bring them from another. */
export class HomeTexts {
  private readonly texts = new Map<ObjectId, Promise<ReadonlySet<string>>>();

  constructor(
    private readonly storage: Storage,
    private readonly workflow: string,
  ) {}

  /** Whether a commit's parents have a text as it is: as a string, a key, or their author. */
  async has(text: string, parents: readonly ObjectId[]): Promise<boolean> {
    for (const parent of parents) {
      let texts = this.texts.get(parent);
      if (texts === undefined) {
        texts = this.read(parent);
        this.texts.set(parent, texts);
      }
      if ((await texts).has(text)) return true;
    }
    return false;
  }

  private async read(id: ObjectId): Promise<ReadonlySet<string>> {
    const texts = new Set<string>();
    const [record] = await this.storage.readCommits(this.workflow, [id]);
    if (record === undefined) return texts;
    try {
      const commit = loadCommit(record);
      texts.add(commit.author);
      const { state } = commit.root;
      if (state === undefined) return texts;
      const cache = createObjectCache(CACHE_MAX_BYTES);
      const reader = new ObjectReader(this.storage, this.workflow, cache).with(commit.inline);
      for (const text of stringsOf(await decodeValue(reader, state))) texts.add(text);
    } catch (error) {
      // What cannot be read excuses nothing.
      if (!isAgstateError(error)) throw error;
    }
    return texts;
  }
}
