/**
 * Makes the parts of a small virtual machine in which tests have control groups of version 2, whatever this machine has.
 *
 *     node scripts/pressure-vm.mjs prepare DIR
 *
 * DIR then holds a kernel, an initramfs that loads the driver of disks, and a disk image with a shell and this
 * Node. It needs Debian on x86-64, and for running `qemu-system-x86`; the kernel and busybox are unpacked, not
 * installed. Tests find the folder by AGSTATE_TEST_VM_DIR.
 */
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { gzipSync } from "node:zlib";

const MODULES = ["virtio_pci", "virtio_blk", "ext4"];
const SYSTEM_MIB = 256;

/** Runs a program and gives what it prints; what it complains of is shown. */
const run = (program, args, options = {}) =>
  execFileSync(program, args, {
    maxBuffer: 1 << 30,
    stdio: ["pipe", "pipe", "inherit"],
    ...options,
    env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
  });

const lines = (program, args) => run(program, args).toString().trim().split("\n");

/** Downloads packages and unpacks them in a folder. */
function unpack(names, folder) {
  const downloads = join(folder, "downloads");
  mkdirSync(downloads);
  // As root, apt would rather write as another user, who may not write here.
  const args = ["-qq", "-o", "APT::Sandbox::User=root", "download", ...names];
  run("apt-get", args, { cwd: downloads });
  for (const name of readdirSync(downloads)) run("dpkg", ["-x", join(downloads, name), folder]);
}

/** Finds the package of the kernel that the package without a version stands for. */
function kernelPackage() {
  const wanted = lines("apt-cache", ["depends", "linux-image-cloud-amd64"]);
  const name = wanted.map((line) => /Depends: (linux-image-\S+)/.exec(line)?.[1]).find(Boolean);
  if (name === undefined) throw new Error("apt knows no kernel: run apt-get update first");
  return name;
}

/** Lists the files of modules and of those that they need, in the order in which they load; what is built in is left out. */
function modulesOf(folder, names) {
  const files = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".ko"));
  const byName = new Map(
    files.map((file) => [basename(file, ".ko").replaceAll("-", "_"), join(folder, file)]),
  );
  const order = new Set();
  const visit = (name) => {
    const file = byName.get(name);
    if (file === undefined) return;
    const needs = /\0depends=([^\0]*)\0/.exec(readFileSync(file, "latin1"))?.[1] ?? "";
    for (const need of needs.split(",").filter(Boolean)) visit(need.replaceAll("-", "_"));
    order.add(file);
  };
  for (const name of names) visit(name);
  if (order.size === 0) throw new Error(`no modules that can be loaded as they are in ${folder}`);
  return [...order];
}

function writeScript(path, text) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `#!/bin/busybox sh\n${text}`);
  chmodSync(path, 0o755);
}

/** Puts busybox and a link for each of its programs in a folder's `bin`. */
function addBusybox(busybox, folder) {
  mkdirSync(join(folder, "bin"), { recursive: true });
  copyFileSync(busybox, join(folder, "bin", "busybox"));
  for (const name of lines(busybox, ["--list"]))
    if (name !== "busybox") symlinkSync("busybox", join(folder, "bin", name));
}

/** Makes what the kernel starts with: it loads the drivers and goes over to the disk. */
function makeInitramfs(busybox, modules, folder) {
  addBusybox(busybox, folder);
  for (const name of ["proc", "dev", "root"]) mkdirSync(join(folder, name));
  for (const file of modules) copyFileSync(file, join(folder, basename(file)));
  writeScript(
    join(folder, "init"),
    `mount -t devtmpfs dev /dev
${modules.map((file) => `insmod /${basename(file)}`).join("\n")}
until [ -b /dev/vda ] && [ -b /dev/vdb ]; do sleep 0.1; done
mount -t ext4 -o ro /dev/vda /root
mount --move /dev /root/dev
exec switch_root /root /bin/start
`,
  );
  const names = readdirSync(folder, { recursive: true }).join("\n");
  return gzipSync(run(busybox, ["cpio", "-o", "-H", "newc"], { cwd: folder, input: names }));
}

/** Makes the disk with the programs; what is to be done is on the other disk, that a run of tests makes. */
function makeSystem(busybox, folder) {
  addBusybox(busybox, folder);
  for (const name of ["proc", "sys", "dev", "tmp", "disk"]) mkdirSync(join(folder, name));
  const libraries = lines("ldd", [process.execPath]).map((line) => /\/\S+/.exec(line)?.[0]);
  for (const path of libraries.filter(Boolean))
    cpSync(path, join(folder, path), { dereference: true });
  copyFileSync(process.execPath, join(folder, "bin", "node"));
  writeScript(
    join(folder, "bin", "start"),
    `export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t cgroup2 cgroup /sys/fs/cgroup
mount -t tmpfs tmp /tmp
mount -t ext4 -o noinit_itable /dev/vdb /disk
sh /disk/run
umount /disk
poweroff -f
`,
  );
}

function prepare(folder) {
  if (process.arch !== "x64" || process.platform !== "linux")
    throw new Error("the virtual machine runs the Node of this machine, on Linux on x86-64 only");
  const scratch = mkdtempSync(join(tmpdir(), "agstate-vm-"));
  try {
    const unpacked = join(scratch, "unpacked");
    for (const path of [unpacked, join(scratch, "initramfs"), join(scratch, "system")])
      mkdirSync(path);
    unpack([kernelPackage(), "busybox-static"], unpacked);
    const busybox = join(unpacked, "bin", "busybox");
    const boot = join(unpacked, "boot");
    const kernel = readdirSync(boot).find((name) => name.startsWith("vmlinuz-"));
    const modules = modulesOf(join(unpacked, "lib", "modules"), MODULES);
    const initramfs = makeInitramfs(busybox, modules, join(scratch, "initramfs"));
    const system = join(scratch, "system");
    makeSystem(busybox, system);
    mkdirSync(folder, { recursive: true });
    const image = join(folder, "system.ext4");
    rmSync(image, { force: true });
    run("mke2fs", ["-q", "-t", "ext4", "-d", system, image, `${SYSTEM_MIB}M`]);
    copyFileSync(join(boot, kernel), join(folder, "vmlinuz"));
    writeFileSync(join(folder, "initramfs.gz"), initramfs);
    console.log(`${kernel}; initramfs of ${initramfs.length} bytes; node ${process.version}`);
    console.log(`export AGSTATE_TEST_VM_DIR=${resolve(folder)}`);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

const [command, folder] = process.argv.slice(2);
if (command !== "prepare" || folder === undefined) {
  console.error("usage: node scripts/pressure-vm.mjs prepare DIR");
  process.exit(2);
}
prepare(folder);
