import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import type { LimitedStep, StepEnd } from "../memory-limit.js";
import { longestMs, makeDisk } from "./vm-disk.js";
import { readResults } from "./vm-results.js";

const MEMORY = "1G";
const PARTS = ["vmlinuz", "initramfs.gz", "system.ext4"] as const;

/** Finds a program; Debian puts some where only root looks. */
const find = (program: string) =>
  [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin", "/sbin"]
    .map((folder) => join(folder, program))
    .find((path) => existsSync(path));

interface Machine {
  readonly qemu: string;
  readonly mke2fs: string;
  readonly folder: string;
}

function findMachine(): Machine | string {
  const folder = process.env.AGSTATE_TEST_VM_DIR;
  if (!folder) return "AGSTATE_TEST_VM_DIR is not set";
  const absent = PARTS.find((part) => !existsSync(join(folder, part)));
  if (absent !== undefined)
    return `no ${absent} is in ${folder}: run scripts/pressure-vm.mjs prepare ${folder}`;
  const qemu = find("qemu-system-x86_64");
  if (qemu === undefined) return "qemu-system-x86_64 is not installed";
  const mke2fs = find("mke2fs");
  if (mke2fs === undefined) return "mke2fs is not installed";
  return { qemu, mke2fs, folder };
}

/** Says why no virtual machine can be started, or null when it can. */
export function whyNoVm(): string | null {
  const machine = findMachine();
  return typeof machine === "string" ? machine : null;
}

/** The machine is emulated where the processor's own virtualization cannot be used. */
function argsOf(folder: string, disk: string, console: string, results: string): string[] {
  const [kernel, initramfs, system] = PARTS.map((part) => join(folder, part)) as [
    string,
    string,
    string,
  ];
  const kernelArgs = "console=ttyS0 loglevel=4 panic=-1 psi=1";
  const drive = (file: string, rest: string) => [
    "-drive",
    `file=${file},format=raw,if=virtio,${rest}`,
  ];
  return [
    ...["-machine", "pc", "-accel", "kvm", "-accel", "tcg,thread=multi"],
    ...["-cpu", "max", "-smp", "2", "-m", MEMORY],
    ...["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"],
    ...["-kernel", kernel, "-initrd", initramfs, "-append", kernelArgs],
    ...drive(system, "readonly=on"),
    ...drive(disk, "cache=unsafe"),
    ...["-serial", `file:${console}`, "-serial", `file:${results}`],
  ];
}

/** Runs steps in a virtual machine, which starts and ends with the call. */
export async function runInVm(steps: readonly LimitedStep[]): Promise<StepEnd[]> {
  const machine = findMachine();
  if (typeof machine === "string") throw new Error(machine);
  const scratch = mkdtempSync(join(tmpdir(), "agstate-vm-"));
  const [console, results, errors] = ["console", "results", "errors"].map((name) =>
    join(scratch, name),
  ) as [string, string, string];
  const said = (path: string) => (existsSync(path) ? readFileSync(path, "utf8") : "");
  try {
    const disk = makeDisk(steps, machine.mke2fs, scratch);
    const complaints = openSync(errors, "w");
    const qemu = spawn(machine.qemu, argsOf(machine.folder, disk, console, results), {
      stdio: ["ignore", "ignore", complaints],
      timeout: longestMs(steps),
      killSignal: "SIGKILL",
    });
    closeSync(complaints);
    // A test process that ends takes the machine with it.
    const end = () => qemu.kill("SIGKILL");
    process.once("exit", end);
    await once(qemu, "exit");
    process.off("exit", end);
    const ends = readResults(said(results));
    ends.forEach(({ late, stdout, stderr }, i) => {
      if (late) throw new Error(`${steps[i]!.script} took longer than it may\n${stdout}${stderr}`);
    });
    if (ends.length !== steps.length)
      throw new Error(
        `the machine ended after ${ends.length} of ${steps.length} steps\n${said(errors)}${said(console).slice(-4000)}`,
      );
    return ends.map(({ late, ...step }) => step);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
