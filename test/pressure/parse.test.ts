import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  parseBytes,
  parseCount,
  parseGroups,
  parseKeyed,
  parseLimit,
  parseMeminfo,
  parseMounts,
  parseStalls,
} from "../../src/pressure/parse.js";
import { usually } from "../support/runs.js";

const runs = { numRuns: usually(500, 50_000) };

describe("numbers of the kernel", () => {
  it("are whole, and no more than 64 bits hold", () => {
    expect(parseCount("0\n")).toBe(0);
    expect(parseCount("18446744073709551615\n")).toBe(2 ** 64);
    for (const wrong of ["", "\n", "-1", "1.5", "1e3", "0x10", "18446744073709560000", "1 2"]) {
      expect(parseCount(wrong), wrong).toBeUndefined();
    }
  });

  it("are bytes only where they are exact", () => {
    expect(parseBytes("9007199254740991\n")).toBe(2 ** 53 - 1);
    expect(parseBytes("9007199254740992\n")).toBeUndefined();
  });

  it.each([
    ["max\n", null],
    // Of pages of 4, 16 and 64 KiB, and as very old kernels write it.
    ["9223372036854771712\n", null],
    ["9223372036854759424\n", null],
    ["9223372036854710272\n", null],
    ["9223372036854775807\n", null],
    ["18446744073709551615\n", null],
    ["0\n", null],
    ["536870912\n", 536_870_912],
    ["4096", 4096],
    ["-1\n", undefined],
    ["", undefined],
    ["max 5", undefined],
  ])("are limits: %j is %j", (text, limit) => {
    expect(parseLimit(text)).toBe(limit);
  });
});

const count = fc.oneof(fc.nat(), fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })).map(String);
const key = fc.stringMatching(/^[a-z_][a-z0-9_]{0,20}$/);

describe("a file of keys and numbers", () => {
  it("is read whole", () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.tuple(key, count), { selector: ([name]) => name }), (lines) => {
        const text = lines.map(([name, value]) => `${name} ${value}\n`).join("");
        expect([...parseKeyed(text)]).toEqual(lines.map(([name, value]) => [name, Number(value)]));
      }),
      runs,
    );
  });

  it("loses its wrong lines only", () => {
    const text = "anon 1\nfile\n shmem 2\nslab -3\nsock 4 5\nvmalloc NaN\n\nanon 9\nfile_dirty 6";
    expect([...parseKeyed(text)]).toEqual([
      ["anon", 1],
      ["file_dirty", 6],
    ]);
  });
});

const percent = fc.integer({ min: 0, max: 10_000 }).map((hundredths) => hundredths / 100);
const stallTimes = fc.record({
  avg10: percent,
  avg60: percent,
  avg300: percent,
  totalUs: fc.maxSafeNat(),
});
type Times = { avg10: number; avg60: number; avg300: number; totalUs: number };

function stallLine(kind: string, { avg10, avg60, avg300, totalUs }: Times): string {
  const averages = `avg10=${avg10.toFixed(2)} avg60=${avg60.toFixed(2)} avg300=${avg300.toFixed(2)}`;
  return `${kind} ${averages} total=${totalUs}\n`;
}

describe("pressure stall information", () => {
  it("is read as it is written", () => {
    fc.assert(
      fc.property(stallTimes, fc.option(stallTimes), (some, full) => {
        const text = stallLine("some", some) + (full === null ? "" : stallLine("full", full));
        expect(parseStalls(text)).toEqual({ some, full });
      }),
      runs,
    );
  });

  it.each([
    "",
    "some\n",
    "some avg10=0.00 avg60=0.00 avg300=0.00\n",
    "some avg10=nan avg60=0.00 avg300=0.00 total=0\n",
    "some avg10=-1.00 avg60=0.00 avg300=0.00 total=0\n",
    "some avg10=100.01 avg60=0.00 avg300=0.00 total=0\n",
    "some avg10=0.00 avg60=0.00 avg300=0.00 total=18446744073709551615\n",
    "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
    "awesome avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
  ])("is not made up of %j", (text) => {
    expect(parseStalls(text)).toBeUndefined();
  });

  it("keeps what is understood when a second line is not, and when fields are added", () => {
    const some = { avg10: 1.5, avg60: 2, avg300: 0, totalUs: 7 };
    expect(parseStalls(`${stallLine("some", some)}full avg10=?\n`)).toEqual({ some, full: null });
    const more = stallLine("some", some).replace("some ", "some avg1=99.00 ");
    expect(parseStalls(more)).toEqual({ some, full: null });
  });
});

describe("/proc/meminfo", () => {
  const MEMINFO =
    "MemTotal:       24683620 kB\nMemFree:        20938736 kB\nMemAvailable:   23755584 kB\nHugePages_Total:       0\n";

  it("is the machine's memory", () => {
    expect(parseMeminfo(MEMINFO)).toEqual({
      totalBytes: 24_683_620 * 1024,
      availableBytes: 23_755_584 * 1024,
      freeBytes: 20_938_736 * 1024,
    });
  });

  it("is taken as it is where available memory is not told, or is told to be more than all", () => {
    const old = parseMeminfo(MEMINFO.replace(/MemAvailable.*\n/, ""));
    expect(old?.availableBytes).toBe(20_938_736 * 1024);
    const odd = parseMeminfo(MEMINFO.replace("23755584", "99999999"));
    expect(odd?.availableBytes).toBe(24_683_620 * 1024);
  });

  it.each(["", "MemTotal: 5 kB\n", "MemTotal: 0 kB\nMemFree: 0 kB\n", "MemFree: 5 kB\n"])(
    "is not understood as %j",
    (text) => {
      expect(parseMeminfo(text)).toBeUndefined();
    },
  );
});

const ODD = [" ", "\t", "\n", "\\", "#", "é", ":", ",", "-", "a", "b", "040"];
const name = fc
  .array(fc.constantFrom(...ODD), { minLength: 1, maxLength: 6 })
  .map((parts) => parts.join(""));
const path = fc.array(name, { maxLength: 4 }).map((names) => `/${names.join("/")}`);

/** As the kernel's `seq_path` and `mangle` write it. */
function mangle(text: string): string {
  return text.replace(/[ \t\n\\#]/g, (c) => `\\${c.charCodeAt(0).toString(8).padStart(3, "0")}`);
}

describe("where a process is", () => {
  it("is read with paths of all kinds", () => {
    const group = fc.record({
      hierarchy: fc.nat(),
      controllers: fc.uniqueArray(fc.constantFrom("cpu", "cpuacct", "memory", "name=systemd")),
      // No group has a line end in its name.
      path: path.map((text) => text.replaceAll("\n", "")),
    });
    fc.assert(
      fc.property(fc.array(group), (groups) => {
        const text = groups.map((g) => `${g.hierarchy}:${g.controllers.join(",")}:${g.path}\n`);
        expect(parseGroups(text.join(""))).toEqual(groups);
      }),
      runs,
    );
    expect(parseGroups("0::/a\n:x:/b\n1:cpu\nq:cpu:/\n2:cpu:relative\n")).toEqual([
      { hierarchy: 0, controllers: [], path: "/a" },
    ]);
  });

  it("is found in mounts with spaces and optional fields", () => {
    const mount = fc.record({
      root: path,
      point: path,
      optional: fc.subarray(["shared:7", "master:1", "propagate_from:2"]),
      type: fc.constantFrom("cgroup", "cgroup2", "tmpfs"),
      options: fc.subarray(["rw", "memory", "cpu"], { minLength: 1 }),
    });
    fc.assert(
      fc.property(fc.array(mount), (mounts) => {
        const lines = mounts.map(({ root, point, optional, type, options }) =>
          ["30 22 0:27", mangle(root), mangle(point), "rw,relatime", ...optional]
            .concat("-", type, "a\\040source", options.join(","))
            .join(" "),
        );
        expect(parseMounts(`${lines.join("\n")}\n`)).toEqual(
          mounts.map(({ root, point, type, options }) => ({ root, point, type, options })),
        );
      }),
      runs,
    );
  });

  it("is not found in lines that are none", () => {
    expect(
      parseMounts(
        "30 22 0:27 / /a rw\n30 22 0:27 / /a rw -\n30 22 0:27 x /a rw - cgroup2 none rw\n- -\n",
      ),
    ).toEqual([]);
  });
});

/** What the kernel may write, for parts of it to be cut, doubled and spoilt. */
const REAL = [
  "some avg10=53.13 avg60=38.86 avg300=35.79 total=6572983749\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
  "anon 1835008\nfile 4804608\ninactive_file 270336\nactive_file 4534272\nslab_reclaimable 1\n",
  "low 0\nhigh 12\nmax 3\noom 1\noom_kill 1\noom_group_kill 0\n",
  "usage_usec 1\nnr_periods 7\nnr_throttled 1\nthrottled_usec 12345\n",
  "9223372036854771712\n",
  "max\n",
  "4:memory:/process/a\n0::/user.slice\n",
  "40 30 0:37 / /sys/fs/cgroup/uni\\040fied rw,relatime shared:1 - cgroup2 cgroup2 rw\n",
  "MemTotal:       24683620 kB\nMemFree:        20938736 kB\nMemAvailable:   23755584 kB\n",
];

const spoilt = fc
  .tuple(fc.constantFrom(...REAL), fc.nat(), fc.nat(20), fc.string({ maxLength: 4 }))
  .map(([text, at, length, inserted]) => {
    const from = at % (text.length + 1);
    return text.slice(0, from) + inserted + text.slice(from + length);
  });
const junk = fc.oneof(
  { weight: 3, arbitrary: spoilt },
  { weight: 1, arbitrary: fc.uint8Array().map((bytes) => Buffer.from(bytes).toString()) },
  { weight: 1, arbitrary: fc.stringMatching(/^[\d.e+\-max =\n]*$/) },
);

/** Every number in a value, however deep. */
function numbersIn(value: unknown): number[] {
  if (typeof value === "number") return [value];
  if (value instanceof Map) return [...value.values()].flatMap(numbersIn);
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(numbersIn) : [];
}

describe("any text", () => {
  it("is read without an error, and never as a number that none can be", () => {
    let understood = 0;
    fc.assert(
      fc.property(junk, (text) => {
        const parsers = [parseCount, parseBytes, parseLimit, parseKeyed, parseStalls];
        for (const parse of [...parsers, parseMeminfo, parseGroups, parseMounts]) {
          for (const number of numbersIn(parse(text))) {
            understood++;
            expect(number >= 0 && number <= 2 ** 64, `${parse.name} gave ${number}`).toBe(true);
          }
        }
        const { some, full } = parseStalls(text) ?? {};
        for (const times of [some, full]) {
          if (times) expect(Math.max(times.avg10, times.avg60, times.avg300)).toBeLessThan(100.001);
        }
        const machine = parseMeminfo(text);
        if (machine) {
          expect(machine.availableBytes).toBeLessThanOrEqual(machine.totalBytes);
          expect(machine.freeBytes).toBeLessThanOrEqual(machine.availableBytes);
        }
      }),
      { numRuns: usually(2000, 200_000) },
    );
    expect(understood).toBeGreaterThan(500);
  });
});
