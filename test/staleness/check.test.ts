import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { checkResources } from "../../src/staleness/check.js";
import type { CheckFunction, Observation, Resource } from "../../src/staleness/types.js";
import { agstateError } from "../support/stores.js";

const NOW = 1_700_000_000_000;

function resources(count: number, more: Partial<Resource> = {}): Resource[] {
  return Array.from({ length: count }, (_, i) => ({
    type: "custom",
    id: `r${i}`,
    version: "1",
    tolerance: "exact",
    observedAt: NOW,
    steps: [],
    ...more,
  }));
}

const one = (more: Partial<Resource> = {}) => resources(1, { id: "r", ...more })[0] as Resource;

/** What a check of one resource comes to. */
async function checkOne(custom: CheckFunction, more: Partial<Resource> = {}, how: object = {}) {
  const [checked] = await checkResources([one(more)], {
    checkers: { custom },
    now: () => NOW,
    ...how,
  });
  return checked;
}

/**
 * A server that answers nobody until as many requests wait as may be under way at once, or all that will come have: so a
 * wave of requests is one round trip, however long that takes.
 */
async function waveServer(total: number, atOnce: number) {
  let waiting: ServerResponse[] = [];
  let come = 0;
  const counts = { waves: 0, most: 0 };
  let idle: NodeJS.Timeout | undefined;
  const letGo = () => {
    clearTimeout(idle);
    counts.waves++;
    for (const response of waiting) response.end("1");
    waiting = [];
  };
  const server = createServer((_, response) => {
    come++;
    waiting.push(response);
    counts.most = Math.max(counts.most, waiting.length);
    clearTimeout(idle);
    // Those that never come are more waves, and not a test without an end.
    idle = setTimeout(letGo, 3000);
    // One turn later, so that one too many is seen.
    if (waiting.length >= atOnce || come === total) setImmediate(letGo);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/`, counts };
}

describe("a check of many resources", () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it("of 200 takes at most 7 round trips, with never more than 50 requests at once", async () => {
    const { url, counts } = await waveServer(200, 50);
    const custom: CheckFunction = async ({ id }, { signal }) =>
      (await fetch(url + id, { signal })).text();
    const checked = await checkResources(resources(200), { checkers: { custom }, now: () => NOW });
    expect(checked.map(({ verdict }) => verdict)).toEqual(new Array(200).fill("fresh"));
    expect(counts.waves).toBeLessThanOrEqual(7);
    expect(counts.most).toBe(50);
  });

  it("keeps the order in which they are given, and tells of each as it is known", async () => {
    const given = resources(10);
    const told: [string, number][] = [];
    const holding = new Map<string, () => void>();
    const custom: CheckFunction = ({ id }) =>
      new Promise((resolve) => {
        holding.set(id, () => resolve(id === "r3" ? "2" : "1"));
        if (holding.size < 10) return;
        const last = [...holding.values()].reverse();
        const next = () => {
          last.shift()?.();
          if (last.length > 0) setImmediate(next);
        };
        next();
      });
    const checked = await checkResources(given, {
      checkers: { custom },
      onChecked: (each, i) => told.push([each.resource.id, i]),
    });
    expect(checked.map(({ resource }) => resource)).toEqual(given);
    expect(checked.map(({ found }) => found === "changed").indexOf(true)).toBe(3);
    expect(told).toEqual(given.map(({ id }, i) => [id, i]).reverse());
  });

  it("asks once about one type, id and version, and apart about anything else", async () => {
    const asked: string[] = [];
    const custom: CheckFunction = async ({ id, version }) => {
      asked.push(`${id} ${version}`);
      return "1";
    };
    const given = [
      ...resources(5, { id: "a" }),
      one({ id: "a", version: "2" }),
      one({ id: "a", version: null }),
      one({ id: "a", tolerance: { maxAgeMs: 1 }, observedAt: 0 }),
      one({ id: "b" }),
      one({ id: "a", type: "other" }),
      one({ id: "c", tolerance: "ignore" }),
    ];
    const other: CheckFunction = (about, context) => custom({ ...about, id: "other" }, context);
    const checked = await checkResources(given, { checkers: { custom, other } });
    expect(asked.sort()).toEqual(["a 1", "a 2", "a null", "b 1", "other 1"]);
    expect(checked.map(({ found }) => found)).toEqual([
      ...new Array(5).fill("same"),
      "changed",
      "unknown",
      ...new Array(3).fill("same"),
      "ignored",
    ]);
  });

  const ANSWERS: [answer: unknown, found: string][] = [
    ["1", "same"],
    ["2", "changed"],
    [null, "gone"],
    [{ kind: "same" }, "same"],
    [{ kind: "version", version: "2", shown: "two" }, "changed"],
    [{ kind: "gone", why: "moved away" }, "gone"],
    [{ kind: "unknown", why: "no answer" }, "unknown"],
    ["", "unknown"],
    ["a\nb", "unknown"],
    [undefined, "unknown"],
    [1, "unknown"],
    [true, "unknown"],
    [[], "unknown"],
    [{}, "unknown"],
    [{ kind: "fresh" }, "unknown"],
    [{ kind: "version" }, "unknown"],
    [{ kind: "version", version: 1 }, "unknown"],
    [{ kind: "gone" }, "unknown"],
  ];
  it("takes what a checker may answer, and all else as unknown", async () => {
    for (const [answer, found] of ANSWERS) {
      const byFunction = await checkOne(() => answer as string);
      expect([answer, byFunction?.found]).toEqual([answer, found]);
      const [byObject] = await checkResources([one()], {
        checkers: { custom: { observe: async () => answer as Observation } },
      });
      expect(byObject).toEqual(byFunction);
    }
    expect((await checkOne(() => 1 as never))?.why).toBe("its checker answered nothing usable");
  });

  it("knows no checker by a name that every object has", async () => {
    for (const type of ["none", "constructor", "toString"]) {
      const checked = await checkOne(() => "1", { type });
      expect(checked).toMatchObject({ found: "unknown", verdict: "unknown" });
      expect(checked?.why).toBe(`there is no checker of type "${type}"; given are custom`);
    }
  });

  it("asks again after what may pass, and tells nothing of what an error says", async () => {
    vi.useFakeTimers();
    const thrown = Object.assign(new Error("https://u:secret@h"), { code: "ECONNRESET" });
    const failing: [CheckFunction, why: string][] = [
      [() => Promise.reject(thrown), "its checker failed: Error ECONNRESET, asked 3 times"],
      [() => Promise.reject("secret"), "its checker failed, asked 3 times"],
      [
        () => {
          throw new TypeError("secret", { cause: { code: "ENOTFOUND" } });
        },
        "its checker failed: TypeError ENOTFOUND, asked 3 times",
      ],
      [
        () => ({ kind: "unknown", why: "answered 503", again: true }),
        "answered 503, asked 3 times",
      ],
    ];
    for (const [fail, why] of failing) {
      let asked = 0;
      const counting: CheckFunction = (about, context) => {
        asked++;
        return fail(about, context);
      };
      const failed = checkOne(counting);
      await vi.runAllTimersAsync();
      expect(await failed).toMatchObject({ verdict: "unknown", why });
      expect(asked).toBe(3);
      // The second answer counts.
      asked = 0;
      const passing = checkOne((about, context) => (asked > 0 ? "1" : counting(about, context)));
      await vi.runAllTimersAsync();
      expect((await passing)?.verdict).toBe("fresh");
    }
  });

  it("does not ask again where that cannot help, or as often as it is told", async () => {
    vi.useFakeTimers();
    for (const [answer, retries, times] of [
      [{ kind: "unknown", why: "w" }, 2, 1],
      [{ kind: "unknown", why: "w", again: false }, 2, 1],
      [{ kind: "gone", why: "w" }, 2, 1],
      [{ kind: "unknown", why: "w", again: true }, 0, 1],
      [{ kind: "unknown", why: "w", again: true }, 5, 6],
    ] as const) {
      const custom = vi.fn(() => answer);
      const checked = checkOne(custom, {}, { retries });
      await vi.runAllTimersAsync();
      await checked;
      expect(custom).toHaveBeenCalledTimes(times);
    }
  });

  it("waits as long as the source wants, and leaves its place to others", async () => {
    vi.useFakeTimers();
    const asked: string[] = [];
    const custom: CheckFunction = ({ id }) => {
      const first = !asked.includes(id);
      asked.push(id);
      return id === "r0" && first
        ? { kind: "unknown", why: "answered 429", again: true, waitMs: 5000 }
        : "1";
    };
    const all = checkResources(resources(3), { checkers: { custom }, concurrency: 1 });
    await vi.advanceTimersByTimeAsync(4999);
    expect(asked).toEqual(["r0", "r1", "r2"]);
    await vi.runAllTimersAsync();
    expect(asked).toEqual(["r0", "r1", "r2", "r0"]);
    expect((await all).map(({ verdict }) => verdict)).toEqual(["fresh", "fresh", "fresh"]);
  });

  it("does not wait for what comes after its time", async () => {
    const custom = vi.fn(
      (): Observation => ({ kind: "unknown", why: "answered 429", again: true, waitMs: 3_600_000 }),
    );
    expect((await checkOne(custom))?.why).toBe(
      "answered 429; it wants to be asked again in 3600 s, after this check's time",
    );
    expect(custom).toHaveBeenCalledTimes(1);
  });

  it("is not held up by a checker that does not look at its signal", async () => {
    vi.useFakeTimers();
    const signals: AbortSignal[] = [];
    const custom: CheckFunction = ({ id }, { signal }) => {
      if (id !== "r0") return "1";
      signals.push(signal);
      return new Promise(() => undefined);
    };
    const all = checkResources(resources(3), { checkers: { custom }, concurrency: 1 });
    await vi.advanceTimersByTimeAsync(40_000);
    const checked = await all;
    expect(checked.map(({ verdict }) => verdict)).toEqual(["unknown", "fresh", "fresh"]);
    expect(checked[0]?.why).toBe("no answer within 10 s, asked 3 times");
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, true]);
  });

  it("when its time is over says of what is left that it is unknown", async () => {
    vi.useFakeTimers();
    const custom: CheckFunction = ({ id }) => (id === "r0" ? "1" : new Promise(() => undefined));
    const how = { checkers: { custom }, concurrency: 2, timeoutMs: 100_000 };
    const all = checkResources(resources(5), how);
    await vi.advanceTimersByTimeAsync(59_999);
    let done = false;
    all.then(() => {
      done = true;
    });
    await vi.advanceTimersByTimeAsync(0);
    expect(done).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    const whys = (await all).map(({ verdict, why }) => `${verdict}: ${why}`);
    const late = "unknown: the time for the whole check was over before it answered";
    const never = "unknown: not asked: the time for the whole check was over";
    expect(whys).toEqual(["fresh: unchanged", late, late, never, never]);
    expect(vi.getTimerCount()).toBe(0);

    const again = { kind: "unknown", why: "answered 503", again: true, waitMs: 50 } as const;
    const pausing = checkOne(() => again, {}, { totalMs: 100 });
    await vi.advanceTimersByTimeAsync(100);
    expect((await pausing)?.why).toBe(
      "answered 503; the time for the whole check was over before it answered",
    );
  });

  it("ends at once with the reason of its caller, and leaves nothing behind", async () => {
    vi.useFakeTimers();
    const reason = new Error("the caller left");
    const aborted: unknown[] = [];
    const caller = new AbortController();
    const custom: CheckFunction = ({ id }, { signal }) => {
      if (id === "r0") return { kind: "unknown", why: "w", again: true };
      signal.addEventListener("abort", () => aborted.push(signal.reason));
      return new Promise(() => undefined);
    };
    const how = { checkers: { custom }, concurrency: 2, signal: caller.signal };
    const all = checkResources(resources(40), how);
    const ended = expect(all).rejects.toBe(reason);
    await vi.advanceTimersByTimeAsync(10);
    caller.abort(reason);
    await ended;
    expect(aborted).toEqual([reason, reason]);
    expect(vi.getTimerCount()).toBe(0);
    await expect(checkResources(resources(1), how)).rejects.toBe(reason);
  });

  it("fails as its listener fails, and stops", async () => {
    vi.useFakeTimers();
    const custom: CheckFunction = ({ id }) => (id === "r0" ? "1" : new Promise(() => undefined));
    const onChecked = () => {
      throw new Error("full");
    };
    const all = checkResources(resources(50), { checkers: { custom }, onChecked });
    await expect(all).rejects.toThrow("full");
    await vi.advanceTimersByTimeAsync(0);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("warns of nothing, however many are under way", async () => {
    const warned: unknown[] = [];
    const listen = (warning: unknown) => warned.push(warning);
    process.on("warning", listen);
    onTestFinished(() => {
      process.off("warning", listen);
    });
    let held: (() => void)[] = [];
    const custom: CheckFunction = () =>
      new Promise((resolve) => {
        held.push(() => resolve("1"));
        if (held.length < 500) return;
        for (const letGo of held) letGo();
        held = [];
      });
    await checkResources(resources(500), {
      checkers: { custom },
      concurrency: 500,
      signal: new AbortController().signal,
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(warned).toEqual([]);
  });

  it("refuses bounds that are none, and more resources than its limit", async () => {
    for (const [name, values] of Object.entries({
      timeoutMs: [0, -1, 0.5, 2 ** 31, Number.NaN, "1"],
      totalMs: [0, 2 ** 31, null],
      retries: [-1, 101],
      concurrency: [0, 1001, Number.POSITIVE_INFINITY],
      skewMs: [-1],
    })) {
      for (const value of values) {
        const refused = checkResources([], { checkers: {}, [name]: value });
        await expect(refused).rejects.toEqual(agstateError("INVALID_ARGUMENT", { field: name }));
      }
    }
    const many = checkResources(resources(10_001), { checkers: {} });
    await expect(many).rejects.toEqual(agstateError("LIMIT_EXCEEDED"));
    expect(await checkResources([], { checkers: {} })).toEqual([]);
  });
});
