import { cpSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { openStore, type Workflow } from "../../src/index.js";
import { CliSandbox } from "../support/cli.js";
import { stored } from "../support/stored-text.js";
import { all } from "../support/stores.js";

const boxes: CliSandbox[] = [];
afterAll(() => {
  for (const box of boxes) box.remove();
});

const SUBJECT = "customer-4242";
const EMAIL = "marker.person@example.org";
const COMMITS = 50;
const BRANCHES = 3;

function sandbox(): { box: CliSandbox; directory: string } {
  const box = new CliSandbox();
  boxes.push(box);
  return { box, directory: join(box.directory, ".agstate") };
}

/** Does something with the workflow of a store, which is closed after. */
async function within<T>(directory: string, work: (workflow: Workflow) => Promise<T>): Promise<T> {
  const store = await openStore(`sqlite:${directory}`);
  try {
    return await work(await store.workflow("shop"));
  } finally {
    await store.close();
  }
}

async function fill(directory: string): Promise<void> {
  const store = await openStore(`sqlite:${directory}`);
  const workflow = await store.createWorkflow("shop", {
    state: { customers: {}, log: [] },
    subjects: ["/state/customers/{subject}"],
  });
  const log: string[] = [];
  for (let b = 0; b < BRANCHES; b++) {
    const branch = await workflow.branch({ agent: "clerk", branch: `line-${b}` });
    for (let n = b; n < COMMITS; n += BRANCHES) {
      log.push(n % 7 === 0 ? `wrote to ${EMAIL}` : `order ${n}`);
      await branch.commit({
        state: { customers: { [SUBJECT]: { email: EMAIL, n }, other: { n } }, log },
        step: {
          action: "write",
          record: { v: 1, name: "mail", attempt: 1, startedAt: n, output: { sent: n } },
        },
        subjects: [SUBJECT],
      });
    }
  }
  await store.close();
}

describe("GOV-02: a subject in 50 commits on 3 branches, one of them held", () => {
  it("goes from all versions and step results, again after the hold, and again after a backup", async () => {
    const { box, directory } = sandbox();
    await fill(directory);
    const backup = join(box.directory, "backup");
    cpSync(directory, backup, { recursive: true });
    box.ok(["hold", "add", "clerk/line-1", "--name", "court", "--reason", "file 7"]);

    const ask = ["erase", "--subject", SUBJECT, "--reason", "request 17", "--by", "dpo"];
    const dry = box.json<{ objects: number }>([...ask, "--dry-run"])[0];
    const first = box.run([...ask, "--receipt", "receipt.json"]);
    expect(first.status).toBe(4);
    expect(first.stdout).toMatch(/Kept by holds, and not erased:\n {2}\d+ objects by court/);
    expect(first.stdout).toMatch(/Something is left/);
    expect(dry?.objects).toBeGreaterThan(10);
    expect(statSync(join(box.directory, "receipt.json")).mode & 0o777).toBe(0o600);
    await within(directory, async (workflow) => {
      // What is held is whole, and what is not is gone.
      expect(await workflow.stateAt("holds/court", `/customers/${SUBJECT}/email`)).toBe(EMAIL);
      for (let b = 0; b < BRANCHES; b++) {
        expect(await workflow.stateAt(`clerk/line-${b}`, "/customers")).toEqual({
          other: { n: expect.any(Number) },
        });
      }
      expect(JSON.stringify(await workflow.stateAt("clerk/line-0~3"))).not.toContain(EMAIL);
      expect((await workflow.fsck()).problems).toEqual([]);
      const erasures = (await all(workflow.audit())).filter(({ kind }) => kind === "erasure");
      expect(erasures.map(({ facts }) => facts?.status)).toEqual(["requested", "partial"]);
      expect(erasures[1]?.facts).toMatchObject({ holds: "court", by: "dpo" });
    });

    box.ok(["hold", "release", "court", "--reason", "settled"]);
    const second = box.run([...ask, "--compact"]);
    expect(second.stderr).toBe("");
    expect(second.status).toBe(0);
    expect(second.stdout).toMatch(/Nothing of it was found any more/);
    const gone = async () => {
      await within(directory, async (workflow) => {
        for (const text of [SUBJECT, EMAIL]) expect(await stored(workflow, text)).toEqual([]);
        const report = await workflow.fsck();
        expect(report).toMatchObject({ problems: [], warnings: [] });
        expect(report.gone.length).toBeGreaterThan(COMMITS);
        expect(report.gone[0]).toMatchObject({ reason: "erased", by: "dpo", why: "request 17" });
        for await (const commit of workflow.log()) {
          if (commit.step === null) continue;
          expect(JSON.stringify(await workflow.stepRecord(commit.id))).toContain("withheld");
        }
        expect((await workflow.verifyAudit()).problems).toEqual([]);
      });
      const bytes = readFileSync(join(directory, "store.db"));
      for (const text of [SUBJECT, EMAIL]) expect(bytes.includes(text)).toBe(false);
    };
    await gone();

    // The last backup knows nothing of all that.
    rmSync(directory, { recursive: true });
    cpSync(backup, directory, { recursive: true });
    await within(directory, async (workflow) => {
      expect(await stored(workflow, EMAIL)).not.toEqual([]);
    });
    const again = box.run(["erase", "--receipt", "receipt.json", "--again", "--compact"]);
    expect(again.stderr).toBe("");
    expect(again.status).toBe(0);
    await gone();
  });

  it("names copies outside of the store, and where it failed", async () => {
    const { box, directory } = sandbox();
    await fill(directory);
    box.ok(["export", "--git", "copy.git"]);
    const ask = ["erase", "--subject", SUBJECT, "--reason", "request 17"];
    const [report] = box.json<{ status: string; exports: { directory: string }[] }>(ask);
    expect(report).toMatchObject({ status: "done" });
    expect(report?.exports.map((each) => each.directory)).toEqual([
      expect.stringMatching(/copy\.git$/),
    ]);
    expect(box.ok(["audit"])).toMatch(/erasure/);
    expect(box.ok(["fsck"])).toMatch(/erased object/);
    const bad = [
      [["erase", "--reason", "r"], /say what to erase/],
      [["erase", "--all", "--reason", "r"], /add --yes/],
      [["erase", "--subject", SUBJECT], /say why/],
      [["erase", "--again"], /--receipt FILE/],
      [["erase", "--receipt", "none.json", "--again"], /no receipt/],
      [[...ask, "--receipt", "copy.git"], /no receipt can be written/],
    ] as const;
    for (const [args, message] of bad) {
      const { status, stderr } = box.run(args);
      expect([args, status]).toEqual([args, 2]);
      expect(stderr).toMatch(message);
    }
    expect(box.ok(["erase", "--all", "--yes", "--reason", "request 18"])).toMatch(/Erased/);
    expect(box.ok(["fsck"])).toMatch(/No problems/);
  });
});
