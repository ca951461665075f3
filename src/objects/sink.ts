import { AgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import type { Withheld } from "../core/withheld.js";
import { ENCODING, type ForeignPayloadText, type ObjectRecord } from "../storage/port.js";
import { hashObject } from "./hash.js";
import type { Isolation } from "./isolation.js";
import type { Elsewhere } from "./pointer.js";
import type { DecodedObject } from "./reader.js";
import { PLAIN_SEAL, type Seal, SubjectKeysNeeded } from "./sealing.js";
import { encodeTree, type Link, type TreeEntry } from "./tree.js";

/** An object to be written, and what reading it back would give. */
export interface WrittenObject {
  readonly record: ObjectRecord;
  readonly decoded: DecodedObject;
}

/** How a sink makes objects; nothing of it is needed for objects that are looked at and not written. */
export interface SinkOptions {
  /** The workflow that is written to. */
  readonly workflow?: string;
  /** Makes the bytes of blobs; left out, they are their text. */
  readonly seal?: Seal;
  /** Whether records of sealed blobs carry their text, to be looked at on their way to the store. */
  readonly clear?: boolean | undefined;
  /** Makes what stands for a value of another region, of its canonical text; may throw. */
  readonly point?: ((elsewhere: Elsewhere, text: string, seal: Seal) => PointedTo) | undefined;
}

/** A pointer that is about to be written, and what goes to the other region with it. */
export interface PointedTo {
  /** The pointer's own bytes, as text. */
  readonly body: string;
  readonly foreign: ForeignPayloadText;
}

/**
 * Collects the objects of one write, each once.
 *
 * Ids passed to `know` are stored already (they were read from the store while
 * editing) and are not written again.
 */
export class ObjectSink {
  private readonly written: Map<ObjectId, WrittenObject>;
  private readonly known: Set<ObjectId>;
  /** Subjects whose keys are not at hand: what was encoded of them does not count. */
  private readonly needed: Set<string>;
  private readonly seal: Seal;
  /** The same sink for what belongs to one subject. */
  private readonly owners = new Map<string, ObjectSink>();

  /** @param within the sink whose objects this one collects, and how it seals them */
  constructor(
    private readonly options: SinkOptions = {},
    private readonly within: { readonly sink: ObjectSink; readonly seal: Seal } | null = null,
  ) {
    this.written = within?.sink.written ?? new Map();
    this.known = within?.sink.known ?? new Set();
    this.needed = within?.sink.needed ?? new Set();
    this.seal = within?.seal ?? options.seal ?? PLAIN_SEAL;
  }

  know(id: ObjectId): void {
    this.known.add(id);
  }

  /** The sink as it seals a value of this policy: by its subject's key, where it belongs to one. */
  of(policy: Isolation | null): ObjectSink {
    const owner = policy?.owned === true ? policy.owner : null;
    if (owner === null || this.seal.of === undefined) return this;
    const known = this.owners.get(owner);
    if (known !== undefined) return known;
    const seal = this.seal.of(owner);
    if (seal === null) this.needed.add(owner);
    const own = new ObjectSink(this.options, { sink: this, seal: seal ?? this.seal });
    this.owners.set(owner, own);
    return own;
  }

  blob(text: string): ObjectId {
    return this.add(this.blobObject(text));
  }

  /** A blob that the sink does not take, made as it makes its own. */
  blobObject(text: string): WrittenObject {
    const { seal, within } = this;
    const { body, encoding } = seal.seal(text);
    const id = hashObject("blob", body);
    const record: ObjectRecord =
      encoding === ENCODING.plain
        ? { id, type: "blob", body }
        : { id, type: "blob", body, encoding, ...(this.options.clear && { clear: text }) };
    const decoded = { type: "blob", text, ...(within !== null && { seal }) } as const;
    return { record, decoded };
  }

  /**
   * A pointer to a value that belongs to another region. What it stands for goes with the record, beside the pointer's bytes.
   *
   * @throws AgstateError what the sink's `point` does
   */
  pointer(elsewhere: Elsewhere, text: string): Link {
    const pointed = this.options.point?.(elsewhere, text, this.seal);
    if (pointed === undefined) {
      throw new AgstateError(
        "INTERNAL",
        `a value of region ${elsewhere.region} was given to a sink that cannot send it there`,
        { region: elsewhere.region },
      );
    }
    const body = Buffer.from(pointed.body);
    const id = hashObject("blob", body);
    const { foreign } = pointed;
    const record: ObjectRecord = { id, type: "blob", body, encoding: ENCODING.pointer, foreign };
    this.add({ record, decoded: { type: "blob", text, elsewhere: true } });
    return { type: "blob", id };
  }

  /**
   * Refers to an object that is stored already, and of which no more is known.
   *
   * @throws AgstateError `INVALID_VALUE` when it is another workflow's
   */
  withheld({ workflow, link, reason }: Withheld): Link {
    if (this.options.workflow !== undefined && this.options.workflow !== workflow) {
      throw new AgstateError(
        "INVALID_VALUE",
        `a value that is withheld in workflow ${workflow} cannot be written to workflow ${this.options.workflow}: nothing is known of it there; leave it out`,
        { workflow, object: link.id, reason },
      );
    }
    this.know(link.id);
    return link;
  }

  /** Takes the entries over: they are sorted here, and must not change after. */
  tree(entries: TreeEntry[]): ObjectId {
    const body = encodeTree(entries);
    const record: ObjectRecord = { id: hashObject("tree", body), type: "tree", body };
    return this.add({ record, decoded: { type: "tree", entries } });
  }

  /** Takes an object that was made elsewhere. */
  adopt(object: WrittenObject): void {
    this.written.set(object.record.id, object);
  }

  private add(object: WrittenObject): ObjectId {
    const { id } = object.record;
    if (!this.known.has(id) && !this.written.has(id)) this.written.set(id, object);
    return id;
  }

  /** An object of this write as reading it back would give it. */
  get(id: ObjectId): DecodedObject | undefined {
    return this.written.get(id)?.decoded;
  }

  /** Drops what is not reached from the links: what a later edit of the same write undid. */
  keepReachable(links: Iterable<ObjectId>): void {
    const reached = new Set<ObjectId>();
    const waiting = [...links];
    for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
      const object = this.written.get(id);
      if (object === undefined || reached.has(id)) continue;
      reached.add(id);
      if (object.decoded.type === "tree") {
        for (const entry of object.decoded.entries) waiting.push(entry.id);
      }
    }
    for (const id of this.written.keys()) if (!reached.has(id)) this.written.delete(id);
  }

  /** @throws SubjectKeysNeeded when something belongs to a subject whose key is not at hand: none of it counts then */
  ready(): void {
    if (this.needed.size > 0) throw new SubjectKeysNeeded([...this.needed]);
  }

  /** @throws SubjectKeysNeeded */
  all(): WrittenObject[] {
    this.ready();
    return [...this.written.values()];
  }

  objects(): ObjectRecord[] {
    return this.all().map((object) => object.record);
  }
}
