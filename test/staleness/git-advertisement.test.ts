import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseAdvertisement } from "../../src/staleness/checkers/git-advertisement.js";
import { git, gitBytes, temporaryFolder } from "../support/git.js";
import { usually } from "../support/runs.js";

const folder = temporaryFolder();

/** What a real upload-pack says of its refs over HTTP. */
function advertised(repository: string, protocol = ""): Buffer {
  const args = ["upload-pack", "--stateless-rpc", "--advertise-refs", repository];
  const refs = gitBytes(folder, args, { env: { GIT_PROTOCOL: protocol } });
  return Buffer.concat([Buffer.from("001e# service=git-upload-pack\n0000"), refs]);
}

function repository(name: string, format: string): string {
  const path = join(folder, name);
  git(folder, ["init", "-q", "-b", "main", `--object-format=${format}`, path]);
  const who = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
  git(path, [...who, "commit", "-q", "--allow-empty", "-m", "first"]);
  git(path, [...who, "commit", "-q", "--allow-empty", "-m", "second"]);
  for (const ref of ["refs/heads/é#1", "refs/notes/x"]) git(path, ["update-ref", ref, "HEAD"]);
  git(path, [...who, "tag", "-a", "v1", "-m", "one"]);
  return path;
}

function expectedOf(path: string): Map<string, string> {
  const lines = git(path, ["show-ref", "--head", "--dereference"]).trim().split("\n");
  return new Map(
    lines.map((line) => [line.slice(line.indexOf(" ") + 1), line.split(" ")[0] ?? ""]),
  );
}

const packet = (text: string) => (Buffer.byteLength(text) + 4).toString(16).padStart(4, "0") + text;
const HEAD = `${packet("# service=git-upload-pack\n")}0000`;
const [ONE, TWO] = ["1".repeat(40), "2".repeat(40)];

describe("an advertisement of Git's refs", () => {
  it("is read as git means it, in either format of ids", () => {
    for (const format of ["sha1", "sha256"]) {
      const path = repository(format, format);
      const expected = expectedOf(path);
      expect(expected.size).toBe(6);
      expect(parseAdvertisement(advertised(path))).toEqual(expected);
      expect(parseAdvertisement(advertised(path, "version=1"))).toEqual(expected);
      // This one lists no refs.
      expect(parseAdvertisement(advertised(path, "version=2"))).toBeNull();
      git(folder, ["clone", "-q", "--depth=1", `file://${path}`, `shallow-${format}`]);
      const shallow = parseAdvertisement(advertised(join(folder, `shallow-${format}`)));
      expect(shallow?.get("refs/heads/main")).toBe(expected.get("refs/heads/main"));
    }
    git(folder, ["init", "-q", "--bare", "empty"]);
    expect(parseAdvertisement(advertised(join(folder, "empty")))).toEqual(new Map());
    const none = `${HEAD}${packet(`${"0".repeat(40)} capabilities^{}\0agent=x\n`)}0000`;
    expect(parseAdvertisement(Buffer.from(none))).toEqual(new Map());
  });

  it("that was cut off or has more behind it is none", () => {
    const path = repository("cut", "sha1");
    const whole = advertised(path);
    const ends = fc.integer({ min: 0, max: whole.length - 1 });
    fc.assert(
      fc.property(ends, (end) => {
        expect(parseAdvertisement(whole.subarray(0, end))).toBeNull();
      }),
      { numRuns: usually(300, 3000) },
    );
    for (const more of ["0000", "0", "\n", "000bHello!\n", "<!-- -->"]) {
      expect(parseAdvertisement(Buffer.concat([whole, Buffer.from(more)]))).toBeNull();
    }
  });

  it("that is not as the protocol has it is none", () => {
    const refs = (...lines: string[]) => `${HEAD}${lines.map(packet).join("")}0000`;
    const first = `${ONE} HEAD\0agent=x\n`;
    expect(parseAdvertisement(Buffer.from(refs(first, `${TWO} refs/heads/A\n`)))?.size).toBe(2);
    const wrong = [
      "",
      "<!doctype html>",
      "0000",
      HEAD,
      refs(first).replace("upload", "receive"),
      refs(first).slice(HEAD.length),
      refs("ERR no such repository\n"),
      refs(`${ONE} HEAD\n`),
      refs(first, `${ONE} HEAD\n`),
      refs(first, "ERR broken\n"),
      refs(first, `${ONE}  `),
      refs(first, `${"1".repeat(39)} refs/heads/a\n`),
      refs(first, `${ONE}1 refs/heads/a\n`),
      refs(first, `${ONE} refs/tags/a^{}\n`),
      refs(first, `${ONE} refs/heads/a\0more\n`),
      refs(first, "version 1\n"),
      `${refs(first).slice(0, -4)}0001`,
      `${refs(first).slice(0, -4)}0004${"0000"}`,
      `${refs(first).slice(0, -4)}0000${packet(`${ONE} refs/heads/a\n`)}0000`,
      `${HEAD}zzzz${first}0000`,
    ];
    for (const text of wrong)
      expect([text, parseAdvertisement(Buffer.from(text))]).toEqual([text, null]);
  });
});
