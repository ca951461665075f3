/** Sets of small numbers, each kept once and known by a number of its own, so that unions are looked up. */
export class GroupSets {
  readonly #members: ReadonlySet<number>[] = [new Set()];
  readonly #byText = new Map<string, number>([["", 0]]);
  readonly #unions = new Map<number, Map<number, number>>();

  /** The empty set. */
  readonly none = 0;

  /** The set of one group. */
  of(group: number): number {
    return this.#known([group]);
  }

  members(set: number): ReadonlySet<number> {
    return this.#members[set] as ReadonlySet<number>;
  }

  union(a: number, b: number): number {
    if (a === b || b === this.none) return a;
    if (a === this.none) return b;
    const ofA = this.#unions.get(a) ?? new Map<number, number>();
    this.#unions.set(a, ofA);
    const found = ofA.get(b);
    if (found !== undefined) return found;
    const made = this.#known([...this.members(a), ...this.members(b)]);
    ofA.set(b, made);
    return made;
  }

  #known(groups: readonly number[]): number {
    const members = [...new Set(groups)].sort((x, y) => x - y);
    const text = members.join();
    const known = this.#byText.get(text);
    if (known !== undefined) return known;
    this.#members.push(new Set(members));
    this.#byText.set(text, this.#members.length - 1);
    return this.#members.length - 1;
  }
}
