import {
  type AgstateError,
  type Branch,
  isAgstateError,
  type Regions,
  type Workflow,
} from "../../src/index.js";

/** What is copied of a longer text is found from this length on. */
const RUN_UNITS = 31;

/** Numbers from 0 to 1 by a seed (mulberry32). */
export function dice(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** How a text begins that may be in one region alone. */
export const markOf = (region: string): string => `MARK-${region}-`;

/** A workflow of the test, with where its parts belong. */
export interface Declared {
  readonly id: string;
  readonly home: string;
  /** By state path below the root, `/customer` or an element of `/visits`. */
  readonly customer: string;
  readonly visits: string;
  /** Where the phases belong; those that are left out are at home. */
  readonly inference: string;
  readonly result: string;
}

/** A text of a region that an agent has seen. */
interface Seen {
  readonly text: string;
  readonly region: string;
}

/** What may happen to an operation besides success: somebody else was faster, or there is nothing to do it to. */
const USUAL = [
  "REF_CONFLICT",
  "REF_EXISTS",
  "REF_NOT_FOUND",
  "REVISION_NOT_FOUND",
  "MERGE_CONFLICT",
  "OPEN_INTENTS",
  "STEP_FENCED",
  "UNRELATED_HISTORIES",
  "SIDE_EFFECTS_LEFT",
] as const;

/** An agent that works on several workflows, and copies what it has seen wherever it can. */
export class Agent {
  readonly operations = new Map<string, number>();
  /** By workflow, how often it was refused. */
  readonly refused = new Map<string, number>();
  /** By how it tried. */
  readonly refusals = new Map<string, number>();
  /** What went otherwise than it must. */
  readonly wrong: string[] = [];
  private readonly seen: Seen[] = [];
  private readonly branches = new Map<string, Branch>();
  private count = 0;

  constructor(
    private readonly name: string,
    private readonly regions: Regions,
    private readonly declared: readonly Declared[],
    private readonly random: () => number,
  ) {}

  async run(times: number): Promise<void> {
    for (let i = 0; i < times; i++) {
      const declared = this.pick(this.declared);
      const workflow = await this.regions.workflow(declared.id);
      const branch = await this.branchOf(workflow);
      const known = this.seen.length > 0;
      if (known && this.random() < 0.4) await this.copy(declared, workflow, branch);
      else await this.work(declared, workflow, branch);
    }
  }

  /** Something that must not be refused because of where data belongs. */
  private async work(declared: Declared, workflow: Workflow, branch: Branch): Promise<void> {
    const { home, customer, visits, inference, result } = declared;
    const n = ++this.count;
    const ways: Record<string, () => Promise<unknown>> = {
      "write at home": () =>
        branch.update([{ op: "set", path: `/notes`, value: this.prose(home) }]),
      "grow a list at home": () =>
        branch.update([{ op: "append", path: "/log", value: `${this.name} did ${n} of many` }]),
      "write a part elsewhere": () =>
        branch.update([{ op: "set", path: "/customer", value: this.payload(customer, declared) }]),
      "edit a part elsewhere": () =>
        branch.update([{ op: "set", path: "/customer/token", value: this.token(customer) }]),
      "add to a list elsewhere": () =>
        branch.update([{ op: "append", path: "/visits", value: this.payload(visits, declared) }]),
      "commit a whole state": async () => {
        const state = (await branch.state()) as Record<string, unknown>;
        this.see(declared, state);
        return branch.commit({ state: { ...state, round: n }, message: `round ${n}` });
      },
      read: async () => this.see(declared, (await branch.state()) as Record<string, unknown>),
      "ask a model": () =>
        branch.step(
          { name: "ask", action: "inference", input: { ask: this.prose(inference) } },
          () => this.payload(inference, declared),
        ),
      "use a tool": () =>
        branch.step({ name: "look", action: "write", input: { n } }, () =>
          this.payload(result, declared),
        ),
      "fail a tool": () =>
        branch
          .step({ name: "fail", action: "write", input: { n } }, () => {
            throw new Error(this.prose(result));
          })
          .catch((error: Error) => {
            if (isAgstateError(error)) throw error;
          }),
      merge: () => workflow.merge([branch.name]),
      "merge from another": async () => {
        const refs = await workflow.refs("refs/heads/agents/");
        return workflow.merge([this.pick(refs).shortName], { into: branch.name });
      },
      "cherry-pick": async () => {
        const refs = await workflow.refs("refs/heads/agents/");
        return workflow.cherryPick(this.pick(refs).shortName, { onto: branch.name });
      },
      fork: () => workflow.branch({ agent: this.name, branch: `b${n % 5}`, from: "canonical" }),
      tag: () => workflow.tag(`t-${this.name}-${n}`, branch.name),
      hold: () =>
        workflow.hold(branch.name, { name: `h-${this.name}-${n}`, reason: "it is asked for" }),
      reset: () => workflow.reset(branch.name, `${branch.name}~1`, { sideEffects: "ignore" }),
      "copy to where it belongs": async () => {
        const mine = this.seen.find(({ region }) => region === customer);
        if (mine === undefined) return;
        await branch.update([{ op: "set", path: "/customer/copy", value: mine.text }]);
      },
    };
    const what = this.pick(Object.keys(ways));
    this.note(this.operations, what);
    try {
      await ways[what]?.();
    } catch (error) {
      if (isAgstateError(error, "REF_CONFLICT")) await branch.refresh().catch(() => undefined);
      if (isAgstateError(error, "PATH_NOT_FOUND", "INVALID_ARGUMENT", "INVALID_PATH")) return;
      if (!isAgstateError(error, ...USUAL))
        this.wrong.push(`${what} in ${workflow.id}: ${String(error)}`);
      this.branches.delete(workflow.id);
    }
  }

  /** A copy of something seen, which must be refused where it does not belong. */
  private async copy(declared: Declared, workflow: Workflow, branch: Branch): Promise<void> {
    const { home, visits, inference, result } = declared;
    const seen = this.pick(this.seen);
    const text = this.form(seen.text);
    const token = tokenIn(seen.text);
    const n = ++this.count;
    const round = [{ op: "set", path: "/round", value: n }] as const;
    const ways: Record<string, [into: string, () => Promise<unknown>]> = {
      value: [home, () => branch.update([{ op: "set", path: "/notes", value: { said: text } }])],
      "element of a list": [
        home,
        () => branch.update([{ op: "append", path: "/log", value: text }]),
      ],
      "end of a text": [home, () => branch.update([{ op: "text-append", path: "/text", text }])],
      "long text": [
        home,
        () =>
          branch.update([{ op: "set", path: "/notes", value: `${"a line\n".repeat(400)}${text}` }]),
      ],
      key: [home, () => branch.update([{ op: "set", path: "/notes", value: { [token]: n } }])],
      "whole state": [home, () => branch.commit({ state: { notes: text, log: [], text: "" } })],
      message: [
        home,
        () => branch.update(round, { message: `found\n\n${text.replaceAll("\0", "")}` }),
      ],
      author: [home, () => branch.update(round, { author: token })],
      reason: [home, () => branch.update(round, { reason: token })],
      trace: [home, () => branch.update(round, { trace: token })],
      "external id": [home, () => branch.update(round, { externalId: token })],
      "branch name": [
        home,
        () => workflow.branch({ agent: this.name, branch: token, from: "canonical" }),
      ],
      "agent's name": [
        home,
        () => workflow.branch({ agent: token, branch: "b", from: "canonical" }),
      ],
      "tag's name": [home, () => workflow.tag(token, "canonical")],
      "hold's reason": [home, () => workflow.hold("canonical", { reason: token })],
      "hold's name": [
        home,
        () => workflow.hold("canonical", { name: token, reason: "it is asked for" }),
      ],
      "step's name": [
        home,
        () => branch.step({ name: token, action: "read", memoize: true } as never, () => n),
      ],
      "tool's input": [
        home,
        () => branch.step({ name: "look", action: "execute", input: { text } }, () => n),
      ],
      "part elsewhere": [
        visits,
        () => branch.update([{ op: "append", path: "/visits", value: { text } }]),
      ],
      "tool's output": [
        result,
        () => branch.step({ name: "look", action: "write" }, () => ({ text })),
      ],
      "model's answer": [
        inference,
        () => branch.step({ name: "ask", action: "inference" }, () => ({ text })),
      ],
      "workflow id": ["", () => this.regions.createWorkflow(token, { storageRegion: home })],
    };
    const what = this.pick(Object.keys(ways));
    const [into, way] = ways[what] as [string, () => Promise<unknown>];
    this.note(this.operations, `copy: ${what}`);
    const forbidden = into !== seen.region;
    try {
      await way();
      if (forbidden) this.wrong.push(`copy of ${seen.region} as ${what} into ${into}: not refused`);
    } catch (error) {
      if (isAgstateError(error, "RESIDENCY_REFUSED")) {
        if (!forbidden)
          this.wrong.push(
            `copy as ${what} of ${seen.region} into ${into} in ${workflow.id}: ${String(error)} ${JSON.stringify((error as AgstateError).details)}`,
          );
        this.note(this.refusals, what);
        this.note(this.refused, what === "workflow id" ? "agstate-catalogue" : workflow.id);
        const told = `${(error as AgstateError).message}${JSON.stringify((error as AgstateError).details)}`;
        if (told.includes(token)) this.wrong.push(`copy as ${what}: the error tells of it`);
      } else if (!isAgstateError(error, ...USUAL, "WORKFLOW_EXISTS")) {
        this.wrong.push(
          `copy as ${what} of ${seen.region} into ${into} in ${workflow.id}: ${String(error)} ${JSON.stringify((error as AgstateError).details)}`,
        );
      }
      if (isAgstateError(error, "REF_CONFLICT")) await branch.refresh().catch(() => undefined);
      this.branches.delete(workflow.id);
    }
  }

  private async branchOf(workflow: Workflow): Promise<Branch> {
    let branch = this.branches.get(workflow.id);
    if (branch === undefined) {
      branch = await workflow.branch({
        agent: this.name,
        branch: `b${Math.floor(this.random() * 5)}`,
      });
      this.branches.set(workflow.id, branch);
    }
    return branch;
  }

  /** Text as a tool may give it: a part of it, or all, as it is or as JSON, with something around it. */
  private form(text: string): string {
    const token = tokenIn(text);
    const from = text.indexOf(token);
    const part = text.slice(
      Math.max(0, from - Math.floor(this.random() * 30)),
      from + token.length + 40,
    );
    const some = this.random() < 0.5 ? text : part;
    const said = this.random() < 0.3 ? JSON.stringify({ result: some }) : some;
    return this.random() < 0.5 ? said : `${this.letters(9)} ${said}, ${this.letters(9)}`;
  }

  /** A name that is a text of a region; as a string of its own it may be short. */
  private token(region: string, least = 16): string {
    return markOf(region) + this.letters(least + Math.floor(this.random() * 24) - 8);
  }

  private letters(count: number): string {
    return Array.from({ length: count }, () => Math.floor(this.random() * 36).toString(36)).join(
      "",
    );
  }

  /** Some lines with a text of a region. */
  private prose(region: string): string {
    const lines = Array.from(
      { length: 1 + Math.floor(this.random() * 20) },
      () => `"${this.letters(12)}"\t${this.letters(8)}\\é ${this.letters(9)}`,
    );
    const at = Math.floor(this.random() * lines.length);
    lines.splice(at, 0, `here: ${this.token(region, RUN_UNITS)} (so)`);
    return lines.join("\n");
  }

  /** A value of a region; what is not the workflow's home is remembered, to be copied. */
  private payload(region: string, { home }: Declared): Record<string, unknown> {
    const payload = {
      token: this.token(region),
      text: this.prose(region),
      list: [this.prose(region)],
    };
    if (region !== home) {
      for (const text of [payload.token, payload.text, ...payload.list]) {
        this.seen.push({ text, region });
      }
    }
    return payload;
  }

  /** Remembers what was read of parts that belong elsewhere. */
  private see({ home, customer, visits }: Declared, state: Record<string, unknown>): void {
    const texts = (value: unknown): string[] =>
      typeof value === "string"
        ? [value]
        : typeof value === "object" && value !== null
          ? Object.values(value).flatMap(texts)
          : [];
    for (const [part, region] of [
      [state.customer, customer],
      [state.visits, visits],
    ] as const) {
      if (region === home) continue;
      for (const text of texts(part)) {
        if (text.includes(markOf(region))) this.seen.push({ text, region });
      }
    }
    this.seen.splice(0, Math.max(0, this.seen.length - 300));
  }

  private pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.random() * from.length)] as T;
  }

  private note(counts: Map<string, number>, what: string): void {
    counts.set(what, (counts.get(what) ?? 0) + 1);
  }
}

function tokenIn(text: string): string {
  return (/MARK-[a-z]+-[0-9a-z]+/.exec(text) as RegExpExecArray)[0];
}
