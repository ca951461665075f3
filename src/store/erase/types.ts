/** What is to be erased: all of the workflow; what stands at paths, in all of history; or what belongs to a subject. */
export type ErasureTarget =
  | { readonly workflow: true }
  | { readonly paths: readonly string[] }
  | { readonly subject: string };

export type ErasureKind = "workflow" | "paths" | "subject";

export interface EraseOptions {
  /** Who erases. */
  readonly by: string;
  /** Why, in one line that says nothing of what is erased. */
  readonly reason: string;
  /** Looks, and changes nothing. */
  readonly dryRun?: boolean;
  /** Leaves trees whose entries' names hold it, and says so: what stands beside such a key then stays readable in history. */
  readonly keepKeys?: boolean;
  /** Objects that an erasure done before has taken out, as its receipt lists them. */
  readonly objects?: readonly string[];
  /**
   * Is given what is needed to do it again in a backup that is restored: once before anything changes, and once
   * at the end. It holds the target as it was given, so it belongs in a safe place outside the store.
   */
  readonly onReceipt?: (receipt: ErasureReceipt) => Promise<void>;
}

export type EraseRequest = ErasureTarget & EraseOptions;

/** An erasure as it can be done again, in another copy of the same store. */
export interface ErasureReceipt {
  readonly agstate: "erasure-receipt";
  readonly v: 1;
  readonly workflow: string;
  /** The request, as the audit names it. */
  readonly id: string;
  readonly target: ErasureTarget;
  readonly by: string;
  readonly reason: string;
  readonly at: Date;
  readonly keepKeys: boolean;
  /** What was taken out, or is to be. */
  readonly objects: readonly string[];
}

/** A branch, or a stored merge, that got a new head without what is erased. */
export interface ErasedHead {
  readonly ref: string;
  readonly old: string;
  readonly new: string;
}

/** Something that holds what was to be erased and could not be changed. */
export interface Residue {
  /**
   * What it is: part of a commit's own text, of a log, a name, a key, or a record of the audit; of a whole workflow
   * all of these (`graph`), which are not looked at one by one.
   */
  readonly kind:
    | "message"
    | "author"
    | "external-id"
    | "trace"
    | "log"
    | "ref-name"
    | "workflow-id"
    | "key"
    | "audit"
    | "graph";
  /** The commit, the entry of a log as `ref@{number}`, the ref, or the object. */
  readonly at: string;
  readonly remedy: string;
}

/** A copy of the workflow outside of the store, as far as it is known. */
export interface KnownExport {
  readonly directory: string;
  readonly by: string;
  readonly at: Date;
}

/** What an erasure found and did; of a dry run, what it would do. */
export interface EraseReport {
  readonly workflow: string;
  /** Names it in the audit, and in each tombstone. */
  readonly id: string;
  readonly kind: ErasureKind;
  readonly dryRun: boolean;
  /** `partial`: something is left in the store, as the report says. */
  readonly status: "done" | "partial";
  readonly heads: readonly ErasedHead[];
  /** Objects of which nothing is left but a tombstone. */
  readonly objects: number;
  /** Copies in commits' rows. */
  readonly inline: number;
  /** Pending rows that were dropped. */
  readonly pending: number;
  /** Bytes of all these. */
  readonly bytes: number;
  /** What holds keep from being erased, hold by hold; an object may be kept by several. */
  readonly held: readonly { readonly hold: string; readonly objects: number }[];
  /** Short values that stood at the paths and that a branch refers to elsewhere: they are erased nowhere. */
  readonly shared: readonly string[];
  /** Objects and pending rows that could not be looked into, as their key or region is not at hand. */
  readonly unread: number;
  readonly residue: readonly Residue[];
  readonly exports: readonly KnownExport[];
}
