import { describe, expect, it } from "vitest";
import {
  isWithheld,
  openStore,
  type Storage,
  type Withheld,
  type Workflow,
} from "../../src/index.js";
import { type CountingStorage, counting } from "../../src/storage/decorators/counting.js";
import { bytesOfStore } from "../residency/bytes.js";
import { testKeys } from "../support/keys.js";
import { makeGround } from "../support/regions.js";
import { agstateError, all } from "../support/stores.js";

const CARD = {
  name: "Ada Lovelace of Marylebone",
  card: "4000 1234 5678 9010 11",
  token: "us-token-4000123456789010",
  note: "x",
};

/** A workflow in eu whose customer, and whatever its tools give, belong to us. */
async function makeTrip() {
  const ground = await makeGround(["eu", "us", "ap"]);
  const { regions, writes } = await ground.open();
  const workflow = await regions.createWorkflow("trip", {
    storageRegion: "eu",
    classification: "sensitive",
    placement: [
      { path: "/state/customer", region: "us" },
      { path: "/state/visits/*", region: "us", classification: "regulated" },
      { phase: "result", region: "us" },
    ],
    state: { customer: CARD, count: 1 },
  });
  const branch = await workflow.branch({ agent: "booker", branch: "try" });
  return { ground, regions, writes, workflow, branch };
}

const refusedEvents = async (workflow: Workflow) =>
  (await all(workflow.audit())).filter(({ kind }) => kind === "refused");

describe("a part of a workflow that belongs to another region", () => {
  it("is kept there, and read as if it were here", async () => {
    const { ground, workflow, branch, writes } = await makeTrip();
    // The payload first: where it is made for the first time, its workflow is made, too.
    expect(writes).toEqual(["catalogue", "catalogue", "us", "us", "eu", "eu"]);
    expect(await branch.state()).toEqual({ customer: CARD, count: 1 });
    expect(await branch.state("/customer/card")).toBe(CARD.card);
    await branch.update([{ op: "set", path: "/customer/note", value: "y" }]);
    await branch.commit({
      state: { ...((await branch.state()) as object), visits: [{ at: CARD.name }] },
    });
    const again = await workflow.branch({ agent: "booker", branch: "try" });
    expect(await again.state()).toEqual({
      customer: { ...CARD, note: "y" },
      count: 1,
      visits: [{ at: CARD.name }],
    });
    for (const text of [CARD.name, CARD.card]) {
      expect(bytesOfStore(ground.directory, "eu").includes(text)).toBe(false);
      expect(bytesOfStore(ground.directory, "us").includes(text)).toBe(true);
    }
  });

  it("is withheld from who has not its region, who can go on all the same", async () => {
    const { ground, branch } = await makeTrip();
    const { us: _, ...others } = ground.config.regions;
    const { regions } = await ground.open({}, { ...ground.config, regions: others });
    const workflow = await regions.workflow("trip");
    const { customer } = (await workflow.stateAt(branch.name)) as unknown as { customer: Withheld };
    expect(isWithheld(customer)).toBe(true);
    expect(customer).toMatchObject({ reason: "region", region: "us", classification: "sensitive" });
    await expect(workflow.stateAt(branch.name, "/customer/card")).rejects.toEqual(
      agstateError("WITHHELD"),
    );
    const other = await workflow.branch({ agent: "booker", branch: "try" });
    await other.commit({ state: { customer, count: 2 } });
    await other.update([{ op: "set", path: "/count", value: 3 }]);
    expect(await branch.refresh().then(() => branch.state())).toEqual({ customer: CARD, count: 3 });
    // What must be sent to the other region is not written at all.
    const before = await workflow.refs();
    await expect(
      other.update([{ op: "set", path: "/customer", value: "somebody else altogether" }]),
    ).rejects.toEqual(agstateError("REGION_UNKNOWN"));
    expect(await workflow.refs()).toEqual(before);
  });

  it("costs one call to its region for each that reading takes at home, and none where it is at hand", async () => {
    const { ground, branch } = await makeTrip();
    const visits = [{ at: CARD.name }, { at: CARD.card }];
    await branch.update([{ op: "append", path: "/visits", values: visits }]);
    let us: CountingStorage | undefined;
    const wrap = (storage: Storage, region: string | null) => {
      if (region !== "us") return storage;
      us = counting(storage);
      return us.storage;
    };
    const { regions } = await ground.open({ wrap });
    const workflow = await regions.workflow("trip");
    expect(await workflow.stateAt(branch.name)).toEqual({ customer: CARD, count: 1, visits });
    // The customer, and then, below the list, all visits.
    expect(us?.counts().calls).toMatchObject({ readPending: 2, write: 0 });
    await workflow.stateAt(branch.name);
    expect(us?.counts().calls.readPending).toBe(2);
  });

  it("is withheld while its region's server is down, and nothing is written then", async () => {
    const { ground, branch } = await makeTrip();
    const us = { ...ground.config.regions.us!, store: "postgres://app@127.0.0.1:1/none" };
    const { regions, writes } = await ground.open(
      { limits: { busyTimeoutMs: 200 } },
      { ...ground.config, regions: { ...ground.config.regions, us } },
    );
    const workflow = await regions.workflow("trip");
    const other = await workflow.branch({ agent: "booker", branch: "try" });
    const state = (await other.state()) as { customer: unknown };
    expect(isWithheld(state.customer)).toBe(true);
    await expect(
      other.update([{ op: "set", path: "/customer", value: "somebody else altogether" }]),
    ).rejects.toEqual(agstateError("STORE_UNAVAILABLE"));
    expect(writes).toEqual([]);
    expect((await branch.refresh()).id).toBe(branch.head.id);
  });

  it("is neither read nor written by who opens the store alone", async () => {
    const { ground, branch, regions } = await makeTrip();
    const store = await openStore(`sqlite:${ground.directory}/eu`);
    const workflow = await store.workflow("trip");
    expect(
      isWithheld(((await workflow.stateAt(branch.name)) as { customer: unknown }).customer),
    ).toBe(true);
    const plain = await workflow.branch({ agent: "booker", branch: "try" });
    await expect(plain.update([{ op: "set", path: "/count", value: 3 }])).rejects.toEqual(
      agstateError("REGION_REFUSED"),
    );
    await expect(plain.update([{ op: "set", path: "/customer", value: 3 }])).rejects.toEqual(
      agstateError("REGION_REFUSED"),
    );
    await expect(workflow.branch({ agent: "other", branch: "new" })).rejects.toEqual(
      agstateError("REGION_REFUSED"),
    );
    await expect(
      store.createWorkflow("plain", {
        storageRegion: "eu",
        placement: [{ phase: "tool", region: "us" }],
      }),
    ).rejects.toEqual(agstateError("REGION_REFUSED"));
    await store.close();
    const events = await refusedEvents(await regions.workflow("trip"));
    expect(events.length).toBeGreaterThan(0);
    const us = await openStore(`sqlite:${ground.directory}/us`);
    await expect(us.workflow("trip")).rejects.toEqual(
      agstateError("WORKFLOW_NOT_FOUND", { home: "eu" }),
    );
    expect(await all(us.workflows())).toEqual([]);
    await us.close();
    await expect(regions.adopt("trip", "us")).rejects.toEqual(agstateError("WORKFLOW_NOT_FOUND"));
  });

  it("has one pointer while it is the same, and merges member by member", async () => {
    const { workflow, branch } = await makeTrip();
    const other = await workflow.branch({ agent: "payer", branch: "pay" });
    const head = other.head.id;
    await other.commit({ state: JSON.parse(JSON.stringify(await other.state())) });
    expect(other.head.id).toBe(head);
    await other.update([{ op: "set", path: "/customer/paid", value: true }]);
    await branch.update([{ op: "set", path: "/customer/note", value: "seen" }]);
    const picked = await workflow.merge([branch.name, other.name]);
    expect(picked).toMatchObject({ status: "merged" });
    expect(await workflow.stateAt("canonical", "/customer")).toEqual({
      ...CARD,
      paid: true,
      note: "seen",
    });
    const links = await Promise.all(
      ["canonical", branch.name].map(async (revision) => {
        const { repository, commit } = {
          repository: workflow.internals,
          commit: await workflow.internals.commitAt(revision),
        };
        return (await repository.objectsOf(commit).tree(commit.root.state!.id)).find(
          ({ name }) => name === "count",
        )?.id;
      }),
    );
    expect(new Set(links).size).toBe(1);
  });
});

describe("a copy of it", () => {
  it("is refused wherever it would go at home, and every refusal is on record", async () => {
    const { ground, workflow, branch } = await makeTrip();
    const before = await workflow.refs();
    const refused: [string, Promise<unknown>][] = [
      ["/copy", branch.update([{ op: "set", path: "/copy", value: CARD.name }])],
      [
        "/deep/0/x",
        branch.update([{ op: "set", path: "/deep", value: [{ x: `so ${CARD.name}!` }] }]),
      ],
      ["a key", branch.update([{ op: "set", path: "/k", value: { [CARD.card]: 1 } }])],
      ["json", branch.update([{ op: "set", path: "/json", value: JSON.stringify(CARD) }])],
      [
        "text",
        branch.update([{ op: "set", path: "/text", value: `${"line\n".repeat(900)}${CARD.name}` }]),
      ],
      [
        "message",
        branch.update([{ op: "set", path: "/count", value: 2 }], { message: `for ${CARD.name}` }),
      ],
      ["author", branch.update([{ op: "set", path: "/count", value: 2 }], { author: CARD.name })],
      [
        "external",
        branch.update([{ op: "set", path: "/count", value: 2 }], { externalId: CARD.card }),
      ],
      ["trace", branch.update([{ op: "set", path: "/count", value: 2 }], { trace: CARD.card })],
      ["reason", branch.update([{ op: "set", path: "/count", value: 2 }], { reason: CARD.card })],
      ["branch", workflow.branch({ agent: "booker", branch: CARD.token })],
      ["tag", workflow.tag(CARD.token, branch.name)],
      ["hold", workflow.hold(branch.name, { reason: `because of ${CARD.name}` })],
      ["step", branch.step({ name: CARD.name, action: "write" }, () => 1)],
      ["input", branch.step({ name: "pay", action: "write", input: { for: CARD.card } }, () => 1)],
    ];
    const outcomes = await Promise.allSettled(refused.map(([, call]) => call));
    for (const [i, outcome] of outcomes.entries()) {
      const what = refused[i]?.[0];
      expect({ what, status: outcome.status }).toEqual({ what, status: "rejected" });
      const { reason } = outcome as PromiseRejectedResult;
      expect({ what, code: reason.code }).toEqual({ what, code: "RESIDENCY_REFUSED" });
      expect(`${reason.message}${JSON.stringify(reason.details)}`).not.toContain("Lovelace");
      expect(`${reason.message}${JSON.stringify(reason.details)}`).not.toContain(CARD.card);
    }
    const after = await workflow.refs();
    expect(after.filter(({ name }) => !name.startsWith("refs/audit/"))).toEqual(
      before.filter(({ name }) => !name.startsWith("refs/audit/")),
    );
    const events = await refusedEvents(workflow);
    const times = events.reduce(
      (sum, event) => sum + ((event as { times?: number }).times ?? 1),
      0,
    );
    expect(times).toBeGreaterThan(0);
    for (const text of [CARD.name, CARD.card]) {
      expect(bytesOfStore(ground.directory, "eu").includes(text)).toBe(false);
    }
  });
});

describe("what was refused as a payload", () => {
  it("does not belong to the region where it was to go", async () => {
    const { regions, workflow, branch } = await makeTrip();
    const other = await regions.createWorkflow("tour", {
      storageRegion: "us",
      placement: [{ path: "/state/notes", region: "eu" }],
    });
    const text = "a note that belongs to Europe alone";
    const tour = await other.canonical();
    await tour.update([{ op: "set", path: "/notes", value: text }]);
    await expect(
      branch.update([{ op: "set", path: "/customer/note", value: text }]),
    ).rejects.toEqual(agstateError("RESIDENCY_REFUSED", { region: "eu", into: "us" }));
    // At home it is where it belongs.
    await branch.update([{ op: "set", path: "/note", value: text }]);
    expect(await workflow.stateAt(branch.name, "/note")).toBe(text);
  });
});

describe("commits that wait", () => {
  it("are looked at as they are made, and are lost when a payload came that they have a copy of", async () => {
    const { workflow } = await makeTrip();
    const branch = await workflow.branch({
      agent: "booker",
      branch: "slow",
      granularity: { every: { steps: 100, ms: 60_000 } },
    });
    await branch.update([{ op: "set", path: "/n", value: 1 }]);
    await expect(branch.update([{ op: "set", path: "/copy", value: CARD.name }])).rejects.toEqual(
      agstateError("RESIDENCY_REFUSED", { where: "/state/copy" }),
    );
    const early = "a sentence of a payload that is still to come";
    await branch.update([{ op: "set", path: "/early", value: early }]);
    expect(branch.gathered).toBe(2);
    const other = await workflow.branch({ agent: "payer", branch: "pay" });
    await other.update([{ op: "set", path: "/customer/note", value: early }]);
    await expect(branch.flush()).rejects.toEqual(
      agstateError("RESIDENCY_REFUSED", { gathered: 2 }),
    );
    await branch.update([{ op: "set", path: "/n", value: 2 }]);
    await branch.flush();
    expect(await branch.state("/n")).toBe(2);
  });
});

describe("an encrypted workflow", () => {
  it("has its payloads under its key elsewhere as well, and no copies, wherever it is sealed", async () => {
    const keys = testKeys();
    const ground = await makeGround(["eu", "us"]);
    const { regions } = await ground.open({ keys });
    const workflow = await regions.createWorkflow("trip", {
      storageRegion: "eu",
      classification: "regulated",
      placement: [{ path: "/state/customer", region: "us" }],
      state: { customer: CARD, text: "" },
    });
    const branch = await workflow.canonical();
    for (const value of [CARD.card, [`${"a line\n".repeat(400)}${CARD.name}`], { deep: [CARD] }]) {
      await expect(branch.update([{ op: "set", path: "/copy", value }])).rejects.toEqual(
        agstateError("RESIDENCY_REFUSED", { region: "us" }),
      );
    }
    await expect(
      branch.step({ name: "pay", action: "write", input: { for: CARD.name } }, () => 1),
    ).rejects.toEqual(agstateError("RESIDENCY_REFUSED", { where: "/step/input/for" }));
    await branch.update([{ op: "set", path: "/customer/note", value: "y" }]);
    const reader = await (await ground.open({ keys })).regions.workflow("trip");
    expect(await reader.stateAt("canonical", "/customer")).toEqual({ ...CARD, note: "y" });
    expect((await reader.fsck()).problems).toEqual([]);
    const locked = await (await ground.open()).regions.workflow("trip");
    expect(isWithheld(await locked.stateAt("canonical", "/customer"))).toBe(true);
    for (const text of [CARD.name, CARD.card]) {
      for (const region of ["eu", "us"]) {
        expect(bytesOfStore(ground.directory, region).includes(text)).toBe(false);
      }
    }
  });
});
