import { existsSync } from "node:fs";
import { userInfo } from "node:os";
import { dirname, join, resolve } from "node:path";
import { AgstateError, isAgstateError } from "../core/errors.js";
import type { Workflow } from "../store/workflow.js";
import { openStore, type Store } from "../store.js";
import { Output } from "./output.js";

/** The options that every command takes. */
export interface GlobalOptions {
  readonly store?: string;
  readonly workflow?: string;
  readonly json?: boolean;
  readonly color?: boolean;
}

const DIRECTORY = ".agstate";

/** One run of the command line: its options, its output, and the store that it opened. */
export class Session {
  readonly out: Output;
  private opened: Store | null = null;

  constructor(readonly options: GlobalOptions) {
    this.out = new Output(options.json === true, wantsColour(options));
  }

  /** The URL of the store: `--store`, `AGSTATE_STORE`, or the nearest `.agstate` upwards. */
  storeUrl(): string {
    const given = this.options.store ?? process.env.AGSTATE_STORE;
    if (given !== undefined && given !== "") return toUrl(given);
    const found = findUpwards(process.cwd());
    if (found === null) {
      throw new AgstateError(
        "STORE_NOT_FOUND",
        `there is no ${DIRECTORY} in this directory or above; make one with agstate init, or name one with --store`,
      );
    }
    return `sqlite:${found}`;
  }

  async store(): Promise<Store> {
    this.opened ??= await openStore(this.storeUrl(), { create: false });
    return this.opened;
  }

  /** Where `init` makes a store when none is named: `.agstate` here. */
  newStoreUrl(): string {
    const given = this.options.store ?? process.env.AGSTATE_STORE;
    return given !== undefined && given !== ""
      ? toUrl(given)
      : `sqlite:${join(process.cwd(), DIRECTORY)}`;
  }

  /** The store to import into: the one that `store` finds, or, where there is none, a new one here. */
  async storeForImport(): Promise<{ store: Store; created: string | null }> {
    try {
      return { store: await this.store(), created: null };
    } catch (error) {
      if (!isAgstateError(error, "STORE_NOT_FOUND")) throw error;
      this.opened = await openStore(this.newStoreUrl());
      return { store: this.opened, created: (await this.opened.describe()).location };
    }
  }

  /** The workflow that `-w` or `AGSTATE_WORKFLOW` names. */
  namedWorkflow(): string | undefined {
    const given = this.options.workflow ?? process.env.AGSTATE_WORKFLOW;
    return given === "" ? undefined : given;
  }

  /** The workflow: the named one, or the only one of the store. */
  async workflow(): Promise<Workflow> {
    const store = await this.store();
    const given = this.namedWorkflow();
    if (given !== undefined) return store.workflow(given);
    const ids: string[] = [];
    for await (const { id } of store.workflows()) {
      ids.push(id);
      if (ids.length > 1) break;
    }
    if (ids.length === 1) return store.workflow(ids[0] as string);
    throw new AgstateError(
      ids.length === 0 ? "WORKFLOW_NOT_FOUND" : "INVALID_ARGUMENT",
      ids.length === 0
        ? "the store has no workflow yet; make one with agstate workflow create NAME"
        : "the store has several workflows; choose one with -w NAME (agstate workflow list shows them)",
    );
  }

  async close(): Promise<void> {
    await this.opened?.close();
  }
}

/** The URL of a store that is given as one, or as a directory. */
export function toUrl(given: string): string {
  if (/^[a-z]+:/.test(given)) return given;
  return `sqlite:${resolve(given)}`;
}

function findUpwards(from: string): string | null {
  for (let at = from; ; at = dirname(at)) {
    const candidate = join(at, DIRECTORY);
    if (existsSync(candidate)) return candidate;
    if (dirname(at) === at) return null;
  }
}

/** Colour only on a terminal, never with `--no-color` or `NO_COLOR`, always with `FORCE_COLOR`. */
function wantsColour(options: GlobalOptions): boolean {
  if (options.color === false) return false;
  const { NO_COLOR = "", FORCE_COLOR = "" } = process.env;
  if (NO_COLOR !== "" || FORCE_COLOR === "0") return false;
  if (FORCE_COLOR !== "") return true;
  return process.stdout.isTTY === true && process.env.TERM !== "dumb";
}

/** The user's name on this computer, for what must name somebody. */
export function userName(): string {
  try {
    return userInfo().username;
  } catch (cause) {
    // A user id without an entry, as in some containers.
    throw new AgstateError(
      "INVALID_ARGUMENT",
      "this computer does not say who you are; name yourself with --actor",
      {},
      { cause },
    );
  }
}
