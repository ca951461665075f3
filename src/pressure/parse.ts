import type { StallTimes } from "./types.js";

/**
 * The greatest number that the kernel writes: 64 bits without a sign. From 2^53 on a number here is near the one that
 * was written, not equal to it; what must be exact asks whether it is a safe integer.
 */
const GREATEST = 2 ** 64;

/** A whole number of the kernel, 0 or more; undefined for all else, and for what no 64 bits hold. */
export function parseCount(text: string): number | undefined {
  const digits = text.trim();
  if (!/^\d{1,20}$/.test(digits)) return undefined;
  const value = Number(digits);
  return value <= GREATEST ? value : undefined;
}

/** A number of bytes; undefined for what is none, or is more than is counted exactly, which no machine has. */
export function parseBytes(text: string): number | undefined {
  const value = parseCount(text);
  return value !== undefined && Number.isSafeInteger(value) ? value : undefined;
}

/**
 * A limit in bytes; null where there is none, and undefined for what is not understood.
 *
 * Version 2 writes `max` for none, and version 1 the greatest number of whole pages below 2^63, which differs with the size
 * of a page. So all from 2^53 on is none. So is 0, which is set for a moment to squeeze a group out: no process
 * runs below it, and nothing can be measured against it.
 */
export function parseLimit(text: string): number | null | undefined {
  if (text.trim() === "max") return null;
  const value = parseCount(text);
  if (value === undefined) return undefined;
  return value > 0 && Number.isSafeInteger(value) ? value : null;
}

/** The numbers of a file of `key value` lines, such as `memory.stat`; lines that are none of these are passed over. */
export function parseKeyed(text: string): Map<string, number> {
  const values = new Map<string, number>();
  for (const line of text.split("\n")) {
    const space = line.indexOf(" ");
    if (space <= 0) continue;
    const value = parseCount(line.slice(space + 1));
    const key = line.slice(0, space);
    if (value !== undefined && !values.has(key)) values.set(key, value);
  }
  return values;
}

/** The lines of a file of pressure stall information; undefined where it does not say `some`. */
export function parseStalls(
  text: string,
): { readonly some: StallTimes; readonly full: StallTimes | null } | undefined {
  const lines = text.split("\n");
  const times = (kind: string) => {
    const line = lines.find((candidate) => candidate.startsWith(`${kind} `));
    return line === undefined ? undefined : parseStallTimes(line.slice(kind.length + 1));
  };
  const some = times("some");
  return some && { some, full: times("full") ?? null };
}

function parseStallTimes(line: string): StallTimes | undefined {
  const fields = new Map<string | undefined, string | undefined>(
    line.split(" ").map((field) => {
      const [name, value] = field.split("=", 2);
      return [name, value];
    }),
  );
  const [avg10, avg60, avg300] = ["avg10", "avg60", "avg300"].map((name) =>
    parsePercent(fields.get(name)),
  );
  const totalUs = parseBytes(fields.get("total") ?? "");
  if (avg10 === undefined || avg60 === undefined || avg300 === undefined) return undefined;
  return totalUs === undefined ? undefined : { avg10, avg60, avg300, totalUs };
}

function parsePercent(text: string | undefined): number | undefined {
  if (text === undefined || !/^\d{1,3}(\.\d{1,6})?$/.test(text)) return undefined;
  return Number(text) <= 100 ? Number(text) : undefined;
}

/** What `/proc/meminfo` says of the machine; undefined without a total, or without what could be had of it. */
export function parseMeminfo(
  text: string,
):
  | { readonly totalBytes: number; readonly availableBytes: number; readonly freeBytes: number }
  | undefined {
  const bytesOf = new Map<string, number>();
  for (const [, key, kilobytes] of text.matchAll(/^(\w+):[ \t]*(\d+) kB$/gm)) {
    const bytes = Number(kilobytes) * 1024;
    if (Number.isSafeInteger(bytes)) bytesOf.set(key as string, bytes);
  }
  const totalBytes = bytesOf.get("MemTotal");
  const freeBytes = bytesOf.get("MemFree");
  if (totalBytes === undefined || totalBytes === 0) return undefined;
  const available = bytesOf.get("MemAvailable") ?? freeBytes;
  if (available === undefined) return undefined;
  const availableBytes = Math.min(available, totalBytes);
  return { totalBytes, availableBytes, freeBytes: Math.min(freeBytes ?? 0, availableBytes) };
}

/** A line of `/proc/PID/cgroup`: where the process is in one hierarchy. */
export interface GroupLine {
  /** 0 is version 2. */
  readonly hierarchy: number;
  /** Of version 1: `memory`, `cpu`, or `name=systemd`; empty for version 2. */
  readonly controllers: readonly string[];
  /** As seen from the reader's cgroup namespace: with `/..` in front where it is outside. */
  readonly path: string;
}

export function parseGroups(text: string): GroupLine[] {
  const groups: GroupLine[] = [];
  // The path may hold colons.
  for (const [, id, names, path] of text.matchAll(/^(\d{1,10}):([^:\n]*):(\/[^\n]*)$/gm)) {
    const controllers = (names as string).split(",").filter((name) => name !== "");
    groups.push({ hierarchy: Number(id), controllers, path: path as string });
  }
  return groups;
}

/** A line of `/proc/PID/mountinfo`. */
export interface Mount {
  /** The part of the file system that is mounted: for control groups, as seen from the reader's namespace. */
  readonly root: string;
  readonly point: string;
  readonly type: string;
  /** The options of the file system as a whole, which for version 1 name its controllers. */
  readonly options: readonly string[];
}

export function parseMounts(text: string): Mount[] {
  const mounts: Mount[] = [];
  for (const line of text.split("\n")) {
    const fields = line.split(" ");
    // Behind the sixth stand optional fields, as many as there are, up to a dash.
    const dash = fields.indexOf("-", 6);
    const [root, point] = fields.slice(3, 5).map(unescapeField);
    const [type, , options] = fields.slice(dash + 1);
    if (dash < 0 || !root?.startsWith("/") || !point?.startsWith("/") || !type) continue;
    mounts.push({ root, point, type, options: (options ?? "").split(",") });
  }
  return mounts;
}

/** Undoes how the kernel writes spaces, tabs, line ends, backslashes and number signs in a field. */
function unescapeField(field: string): string {
  return field.replace(/\\([01][0-7]{2})/g, (_, octal: string) =>
    String.fromCharCode(Number.parseInt(octal, 8)),
  );
}
