import { Wakers } from "../../core/wakers.js";
import type { Watch } from "../port.js";
import type { Statements } from "./statements.js";

/** How often, in milliseconds, it is looked whether another process wrote. */
const POLL_MS = 50;

/**
 * Wakes whoever watches a workflow: at once when this connection wrote to it, and
 * soon after another connection wrote anything.
 *
 * SQLite does not tell of other processes' writes; the number that
 * `PRAGMA data_version` reads is cheap to compare, and is looked at only while
 * somebody watches.
 */
export class FileWatching {
  readonly #wakers = new Wakers();
  #timer: NodeJS.Timeout | null = null;
  #version = 0;

  constructor(private readonly statements: Statements) {}

  watch(workflow: string, wake: () => void): Watch {
    if (this.#timer === null) {
      this.#version = this.#readVersion();
      this.#timer = setInterval(() => this.#look(), POLL_MS).unref();
    }
    const remove = this.#wakers.add(workflow, wake);
    return {
      close: async () => {
        remove();
        if (this.#wakers.idle) this.#stop();
      },
    };
  }

  /** Tells that this connection moved refs of a workflow. */
  wrote(workflow: string): void {
    this.#wakers.wake(workflow);
  }

  close(): void {
    this.#stop();
    this.#wakers.end();
  }

  #readVersion(): number {
    return this.statements.dataVersion.get() as number;
  }

  #look(): void {
    try {
      const version = this.#readVersion();
      if (version === this.#version) return;
      this.#version = version;
    } catch {
      // Whoever is woken reads, and is told by that what is wrong.
    }
    this.#wakers.wakeAll();
  }

  #stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }
}
