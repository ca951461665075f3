import type { Absences } from "./absences.js";
import type { Files } from "./files.js";
import { reasonOf } from "./levels.js";
import { parseStalls } from "./parse.js";
import type { Place } from "./places.js";
import type { Stalls } from "./types.js";

const MACHINE = "/proc/pressure";

/**
 * Where stalls of the process's own group are told, if it has one.
 *
 * At the root of the whole hierarchy, as on a machine whose controllers are all version 1's, the group is the machine. A root
 * has no type; that of a container's namespace is none.
 */
export function groupWithStalls(files: Files, v2: Place | null): string | null {
  const own = v2?.directories[0];
  return own !== undefined && files.exists(`${own}/cgroup.type`) ? own : null;
}

/** How long tasks waited for memory or processors: in the group, or else on the whole machine. */
export function readStalls(
  files: Files,
  absences: Absences,
  group: string | null,
  resource: "memory" | "cpu",
): Stalls | null {
  const path = `${MACHINE}/${resource}`;
  const name = `${resource}.pressure`;
  if (group !== null) {
    const own = stallsOf(files, `${group}/${name}`);
    if (own !== null) return own;
  }
  const machine = stallsOf(files, path);
  if (machine === null) {
    absences.add(
      path,
      `stalls for ${NOUNS[resource]} are not watched: ${path} cannot be read${reasonOf(files, path)}`,
    );
  } else if (group !== null) {
    absences.add(
      name,
      `${group}/${name} cannot be read${reasonOf(files, `${group}/${name}`)}: ${path} is watched, which is the whole machine's`,
    );
  } else {
    absences.add(
      "memory.pressure",
      `the process has no cgroup v2 of its own: stalls are those of the whole machine, of ${MACHINE}`,
    );
  }
  return machine;
}

const NOUNS = { memory: "memory", cpu: "processors" } as const;

function stallsOf(files: Files, path: string): Stalls | null {
  const stalls = parseStalls(files.read(path) ?? "");
  return stalls === undefined ? null : { path, ...stalls };
}
