import { readFileSync, writeFileSync } from "node:fs";
import { getHeapSpaceStatistics } from "node:v8";

/** Writing this to `/proc/self/clear_refs` sets the peak of what is resident to what is resident now (proc(5)). */
const RESET_PEAK = "5";

/**
 * Watches the peak of what the process has resident, from now on.
 *
 * What V8's heap has free of its old spaces counts as growth when it is used: a process that is near its limit may have none.
 *
 * @returns a function that tells by how many bytes the peak lies above what was in use; null where the kernel does not say
 */
export function watchPeak() {
  try {
    writeFileSync("/proc/self/clear_refs", RESET_PEAK);
    const before = statusBytes("VmHWM") - heapFreeBytes();
    return () => statusBytes("VmHWM") - before;
  } catch {
    return () => null;
  }
}

/** What V8 holds and has free, without the space for what is young, which it has in use again at once. */
function heapFreeBytes() {
  const old = getHeapSpaceStatistics().filter(({ space_name }) => space_name !== "new_space");
  return old.reduce((sum, each) => sum + each.physical_space_size - each.space_used_size, 0);
}

function statusBytes(name) {
  const text = readFileSync("/proc/self/status", "utf8");
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(text)[1]) * 1024;
}

/** How many bytes the process has made the kernel write to disks so far; null where it does not say. */
export function bytesWritten() {
  try {
    return Number(/^write_bytes: (\d+)$/m.exec(readFileSync("/proc/self/io", "utf8"))[1]);
  } catch {
    return null;
  }
}
