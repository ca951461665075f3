/** Marks on paths of a value, as a tree of path tokens that is walked along with the value. */
export class PathMarks<Mark> {
  readonly children = new Map<string, PathMarks<Mark>>();
  mark: Mark | undefined = undefined;

  /** The marks at and below a child; undefined when there are none. */
  child(token: string): PathMarks<Mark> | undefined {
    return this.children.get(token);
  }

  /** Whether something strictly below is marked. */
  get marksBelow(): boolean {
    for (const child of this.children.values()) {
      if (child.mark !== undefined || child.marksBelow) return true;
    }
    return false;
  }

  /** The marks at and below a path. */
  node(path: readonly string[]): PathMarks<Mark> | undefined {
    let node: PathMarks<Mark> | undefined = this;
    for (const token of path) node = node?.children.get(token);
    return node;
  }

  /** The mark of a path. */
  at(path: readonly string[]): Mark | undefined {
    return this.node(path)?.mark;
  }

  set(path: readonly string[], mark: Mark): void {
    let node: PathMarks<Mark> = this;
    for (const token of path) {
      let next = node.children.get(token);
      if (next === undefined) {
        next = new PathMarks();
        node.children.set(token, next);
      }
      node = next;
    }
    node.mark = mark;
  }

  /** All marks with their paths, in the order in which the paths were first marked. */
  *entries(prefix: readonly string[] = []): Generator<[readonly string[], Mark]> {
    if (this.mark !== undefined) yield [prefix, this.mark];
    for (const [token, child] of this.children) yield* child.entries([...prefix, token]);
  }

  /** Takes away everything strictly below. */
  clearBelow(): void {
    this.children.clear();
  }
}
