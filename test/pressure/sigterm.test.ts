import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { describe, expect, it, onTestFinished } from "vitest";

/** Makes a process the first of a container of processes, as that of a pod usually is. */
const FIRST = ["--pid", "--fork", "--kill-child"];
const UNSHARE = process.getuid?.() === 0 ? FIRST : ["--user", "--map-root-user", ...FIRST];
const canUnshare = spawnSync("unshare", [...UNSHARE, "true"]).status === 0;

const INDEX = new URL("../../dist/index.js", import.meta.url);
const SCRIPT = `
  import { watchPressure } from ${JSON.stringify(INDEX.href)};
  watchPressure({ reserveBytes: 0, onNotice: ({ code }) => console.log(code) });
  console.log("process " + process.pid);
  setTimeout(() => process.exit(9), 60_000);
`;

describe("a process that is told to end", () => {
  const start = (command: string, args: readonly string[]) => {
    const child = spawn(command, [...args, "--input-type=module", "-e", SCRIPT]);
    const ended = once(child, "close");
    onTestFinished(async () => {
      child.kill("SIGKILL");
      await ended;
    });
    const output = { said: "" };
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output.said += text;
    });
    const begun = async () => {
      while (!output.said.includes("process ")) await once(child.stdout, "data");
    };
    return { pid: child.pid as number, ended, begun, output };
  };

  it("ends by the signal, when it has said what is in the store", async () => {
    const { pid, ended, begun, output } = start(process.execPath, []);
    await begun();
    process.kill(pid, "SIGTERM");
    expect(await ended).toEqual([null, "SIGTERM"]);
    expect(output.said).toContain("safe\n");
  });

  it.skipIf(!canUnshare)("ends all the same as the first process of a container", async () => {
    const { pid, ended, begun, output } = start("unshare", [...UNSHARE, process.execPath]);
    await begun();
    expect(output.said).toContain("process 1\n");
    const [first] = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ");
    process.kill(Number(first), "SIGTERM");
    expect(await ended).toEqual([143, null]);
    expect(output.said).toContain("safe\n");
  });
});
