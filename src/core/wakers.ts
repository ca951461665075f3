/** Whom to wake, by what they wait for: the bookkeeping that all ways of watching share. */
export class Wakers {
  readonly #wakers = new Map<string, Set<{ readonly wake: () => void }>>();

  /** Everything that somebody waits for. */
  keys(): string[] {
    return [...this.#wakers.keys()];
  }

  has(key: string): boolean {
    return this.#wakers.has(key);
  }

  get idle(): boolean {
    return this.#wakers.size === 0;
  }

  /** Adds one to be woken, and gives what takes it out again. */
  add(key: string, wake: () => void): () => void {
    const entry = { wake };
    const entries = this.#wakers.get(key) ?? new Set();
    this.#wakers.set(key, entries.add(entry));
    return () => {
      entries.delete(entry);
      if (entries.size === 0 && this.#wakers.get(key) === entries) this.#wakers.delete(key);
    };
  }

  wake(key: string): void {
    // A copy: who is woken may go at once.
    for (const { wake } of [...(this.#wakers.get(key) ?? [])]) wake();
  }

  wakeAll(): void {
    for (const key of this.keys()) this.wake(key);
  }

  /** Wakes all a last time. */
  end(): void {
    const all = this.keys().flatMap((key) => [...(this.#wakers.get(key) ?? [])]);
    this.#wakers.clear();
    for (const { wake } of all) wake();
  }
}
