/**
 * A stretch of the elements of a list that a question asks about: `count`
 * elements from index `at` of the list as it is where the question stands, which
 * are those from index `first` on where it was asked.
 */
export interface Span {
  readonly question: number;
  readonly at: number;
  readonly count: number;
  readonly first: number;
}

/** What is asked about one value. */
export interface AskedAt {
  readonly tokens: readonly string[];
  readonly questions: readonly number[];
  readonly spans: readonly Span[];
}

/**
 * The questions that stand at a commit, by path: a tree of tokens, so that what
 * is the same below one id moves on to a parent as a whole.
 */
export class Asked {
  readonly children = new Map<string, Asked>();
  /** Questions about the whole value that is here. */
  questions: number[] = [];
  /** Questions about its elements. */
  spans: Span[] = [];

  get empty(): boolean {
    return this.children.size === 0 && this.questions.length === 0 && this.spans.length === 0;
  }

  /** The node of a path, made when there is none. */
  at(tokens: readonly string[]): Asked {
    let node: Asked = this;
    for (const token of tokens) {
      let below = node.children.get(token);
      if (below === undefined) {
        below = new Asked();
        node.children.set(token, below);
      }
      node = below;
    }
    return node;
  }

  /** Puts questions below a token, beside those that are there. */
  put(token: string, asked: Asked): void {
    const there = this.children.get(token);
    if (there === undefined) this.children.set(token, asked);
    else there.absorb(asked);
  }

  /** Takes over the questions of another, which must not be used after. */
  absorb(other: Asked): void {
    for (const question of other.questions) this.questions.push(question);
    for (const span of other.spans) this.spans.push(span);
    for (const [token, below] of other.children) this.put(token, below);
  }

  /** Goes through all that is asked. */
  *all(tokens: readonly string[] = []): Generator<AskedAt> {
    const { questions, spans } = this;
    if (questions.length > 0 || spans.length > 0) yield { tokens, questions, spans };
    for (const [token, below] of this.children) yield* below.all([...tokens, token]);
  }
}
