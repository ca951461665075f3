import { say } from "../../test/fault/children/lines.mjs";

/** The longest that a write is under way when the process dies in it, in milliseconds. */
const DURING_MAX_MS = 3;

/**
 * The named points of a run at which its process may die, and the one at which it is to.
 *
 * A point is a moment, such as `seal:before`, and a place, the name of a step, that is passed for the
 * nth time in this process. They are reached from outside: by a decorator of the storage, by step hooks,
 * and by the tools themselves.
 */
export class Points {
  #passed = new Map();
  #target;
  #list;

  constructor({ target, list }) {
    this.#target = target;
    this.#list = list;
  }

  /** Is at a point; does not return if it is the one to die at. */
  at(moment, place) {
    if (this.#is(moment, place)) die();
  }

  /** Puts the points of writing around a storage. */
  wrap = (storage) =>
    new Proxy(storage, {
      get: (target, name) => {
        const value = Reflect.get(target, name, target);
        if (name === "write") return (batch) => this.#write(target, batch);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });

  hooks = {
    before: ({ name, attempt }) => {
      this.at("attempt:before", name);
      if (attempt > 1) this.at("attempt:between", name);
    },
    after: ({ name }) => this.at("hook:after", name),
  };

  async #write(storage, batch) {
    const commitsOf = (moves) => moves.flatMap(({ commits }) => commits);
    const [reviews, steps] = [true, false].map((wanted) =>
      commitsOf(batch.moves.filter(({ ref }) => ref.startsWith("refs/reviews/") === wanted)),
    );
    const entries = steps.map(entryOf).filter((entry) => entry !== null);
    if (entries.length > 1) entries.push({ kind: "group", place: "all" });
    const [intent] = entries;
    entries.push(...reviews.map((commit) => changeOf(commit, intent?.place)));
    for (const { kind, place } of entries) this.at(`${kind}:before`, place);
    const during = entries.filter(({ kind, place }) => this.#is(`${kind}:during`, place));
    const written = storage.write(batch);
    if (during.length > 0) setTimeout(die, Math.random() * DURING_MAX_MS);
    const answer = await written;
    for (const { kind, place } of entries) this.at(`${kind}:after`, place);
    return answer;
  }

  #is(moment, place) {
    const point = `${moment} ${place}`;
    const nth = (this.#passed.get(point) ?? 0) + 1;
    this.#passed.set(point, nth);
    if (this.#list) say(`point ${moment} ${place} ${nth}`);
    const target = this.#target;
    return target?.moment === moment && target.place === place && target.nth === nth;
  }
}

/** Dies as by the kernel's hand: no handler runs, nothing is flushed. */
function die() {
  process.kill(process.pid, "SIGKILL");
}

/** What a commit says of a review; what is used with a step's intent says that by its number, and is at its place here. */
function changeOf({ body }, intent) {
  const text = Buffer.from(body).toString();
  const message = text.slice(text.indexOf("\n\n") + 2).trim();
  const [, verb, name] = message.match(/^(Ask|Use|Deny)\b.*?([^ ]+)$/) ?? [];
  return { kind: verb?.toLowerCase() ?? "close", place: intent ?? name ?? "review" };
}

/** What a commit says in the step log; null when it says nothing. */
function entryOf({ body }) {
  const text = Buffer.from(body).toString();
  const header = (name) => text.match(new RegExp(`^${name} (.*)$`, "m"))?.[1];
  const status = header("agstate-status");
  if (status === undefined) return null;
  const place = text
    .slice(text.indexOf("\n\n") + 2)
    .replace(/: \w+\s*$/, "")
    .replaceAll(" ", "-");
  if (status === "started") return { kind: "intent", place };
  const memo = ["read", "inference"].includes(header("agstate-action"));
  return { kind: memo ? "memo" : "seal", place };
}
