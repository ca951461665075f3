/** Books and pays as it does, erases nothing, and asks a person before it pays and before the last thoughts. */
export const RULES = {
  rules: [
    { tool: "charge", decision: "approve", reason: "it costs money" },
    { tool: "think-*", decision: "approve", action: "inference", paths: ["/stage"] },
    { tool: "erase", decision: "deny", reason: "nothing is erased" },
    { tool: "*", decision: "allow" },
  ],
};

const WITH_INTENT = ["charge"];
const WITHOUT_INTENT = ["think-a", "think-b", "think-c"];
const DENIED = "erase";

/**
 * The person whom the rules ask, in the parent of the processes that die: approves between their lives, and holds what ran
 * against what was approved.
 */
export class Person {
  #audit;
  #branch;
  #workflow;
  /** How often each tool was let run, and was called. */
  #approved = new Map();
  #called = new Map();

  constructor(audit, branch, workflow) {
    this.#audit = audit;
    this.#branch = branch;
    this.#workflow = workflow;
  }

  /** Approves all that waits. */
  async decide() {
    for (const review of await this.#workflow.reviews({ open: true, branch: this.#branch.name })) {
      const { subject } = await review.approve({ actor: "person" });
      count(this.#approved, subject.name);
    }
  }

  /** Holds the calls of a life against what had been approved when it began. */
  lived(said) {
    for (const [word, name] of said) if (word === "tool") count(this.#called, name);
    const times = (counts, name) => counts.get(name) ?? 0;
    this.#audit.expect(`calls of ${DENIED}`, times(this.#called, DENIED), 0);
    for (const name of WITH_INTENT) {
      // Further attempts of the one step that began by it need no other one.
      const called = Math.min(1, times(this.#called, name));
      this.#audit.expect(`${name} ran unasked`, times(this.#approved, name) < called, false);
    }
    for (const name of WITHOUT_INTENT) {
      const unasked = times(this.#called, name) - times(this.#approved, name);
      this.#audit.expect(`calls of ${name} that nobody approved`, Math.max(0, unasked), 0);
    }
  }

  /** Holds the steps of a run that is over against the reviews: each ran by its own approval, and by no other. */
  async conclude() {
    const reviews = (await this.#workflow.reviews({ branch: this.#branch.name })).map(
      ({ info }) => info,
    );
    const denials = reviews.filter(({ kind }) => kind === "denial");
    this.#audit.expect(
      "denials",
      denials.map(({ status, subject }) => [status, subject.name]),
      [["denied", DENIED]],
    );
    const ranBy = new Map();
    for await (const { number, name, input, action, approval } of this.#branch.steps()) {
      const wanted = [...WITH_INTENT, ...WITHOUT_INTENT].includes(name);
      this.#audit.expect(`${name} ran by an approval`, approval !== null, wanted);
      if (approval === null) continue;
      this.#audit.expect(`what else ran by ${approval}`, ranBy.get(approval), undefined);
      ranBy.set(approval, name);
      const review = reviews.find(({ id }) => id === approval);
      const hasNumber = WITH_INTENT.includes(name);
      this.#audit.expect(
        `the approval of ${name}`,
        [review?.status, review?.subject.name, review?.subject.input, review?.use?.number],
        ["used", name, input, hasNumber ? number : null],
      );
      this.#audit.expect(`the class of ${name}`, action, hasNumber ? "execute" : "inference");
    }
    const used = new Map();
    for (const { status, subject } of reviews) if (status === "used") count(used, subject.name);
    for (const name of WITH_INTENT)
      this.#audit.expect(`approvals of ${name} used`, used.get(name), 1);
    for (const name of WITHOUT_INTENT) {
      const short = Math.max(0, this.#called.get(name) - (used.get(name) ?? 0));
      this.#audit.expect(`calls of ${name} by no approval`, short, 0);
    }
  }
}

function count(counts, name) {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}
