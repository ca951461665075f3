import { afterAll, expect, it } from "vitest";
import { CliSandbox } from "../support/cli.js";

const box = new CliSandbox();
afterAll(() => box.remove());

it("what is erased is told as such by show, diff, cat and export", () => {
  box.ok(["init"]);
  box.ok(["workflow", "create", "trip", "--state", "-", "--isolate", "/state/user/email"], {
    input: '{"user":{"email":"ada@example.org","name":"Ada"}}',
  });
  const head = box.ok(["show", "--json", "canonical"]);
  const { id } = JSON.parse(head) as { id: string };
  box.ok(["erase", "--path", "/state/user/email", "--reason", "request 17"]);

  const diff = box.ok(["diff", id, "canonical"]);
  expect(diff).toMatch(/^- \/user\/email: \(withheld: erased, blob [0-9a-f]{10}\)$/m);
  expect(box.ok(["show", "canonical"])).toMatch(/\(withheld: erased, blob [0-9a-f]{10}\)/);
  expect(JSON.parse(box.ok(["cat", id]))).toEqual({
    user: {
      email: { $agstate: "withheld", reason: "erased", object: expect.any(String) },
      name: "Ada",
    },
  });
  const below = box.run(["cat", `${id}:/user/email/host`]);
  expect(below.status).toBe(3);
  expect(below.stderr).toContain("was erased");

  const exported = box.ok(["export", "--git", "out.git"]);
  expect(exported).toContain("It is a partial clone, without 1 object that is erased.\n");
  const redacted = box.ok(["export", "--git", "redacted.git", "--redacted"]);
  expect(redacted).toContain("Notes stand for 1 object");
  for (const line of `${diff}${exported}${redacted}`.split("\n")) {
    if (!line.startsWith("Wrote")) expect(line.length, line).toBeLessThanOrEqual(80);
  }
});
