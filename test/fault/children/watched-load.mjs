// Puts a load on memory while it is watched, and says what the watch says.
//
// cache MIB: reads a file of so many MiB once, then again.
// thrash MIB SECONDS: reads here and there in a file of so many MiB, which do not fit, until that is told or the time is over;
//   of stalls it is told early, of usage late.
// hold SECONDS: takes memory until that is told, then holds it for so long, going to and fro by a few MiB.
import { closeSync, openSync, readSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { watchPressure } from "../../../dist/index.js";

const MIB = 1 << 20;
const [mode, amount, seconds = amount] = process.argv.slice(2);
const say = (word, value) => writeSync(1, `${word} ${JSON.stringify(value)}\n`);
let told = 0;

const watch = watchPressure({
  ...(mode === "thrash" && { thresholds: { stall10s: 2, usage: 0.97 } }),
  onNotice: ({ code, message }) => say("notice", { code, message }),
  onPressure: ({ level, reasons, sample }) => {
    told++;
    const kinds = reasons.map(({ kind }) => kind);
    const limited = sample.levels.find(({ source }) => source.startsWith("cgroup"));
    say("pressure", {
      level,
      kinds,
      used: limited.usedBytes / limited.limitBytes,
      at: sample.memory?.path,
    });
  },
});

const until = Date.now() + Number(seconds) * 1000;
if (mode === "hold") {
  const held = [];
  // So slowly that it is noticed at the one threshold, and not only at the next, however busy the machine is.
  while (watch.level === "none") {
    held.push(Buffer.alloc(MIB, 1));
    await sleep(25);
  }
  const most = held.length;
  while (Date.now() < until) {
    held.splice(most - 4);
    await sleep(100);
    while (held.length < most) held.push(Buffer.alloc(MIB, 1));
    await sleep(100);
  }
} else {
  const path = join(process.env.WORK, "much");
  const file = openSync(path, "w+");
  const piece = Buffer.alloc(MIB, 7);
  for (let i = 0; i < Number(amount); i++) {
    writeSync(file, piece, 0, MIB, i * MIB);
    if (i % 8 === 0) await sleep(0);
  }
  say("written", Number(amount));
  for (let round = 0; mode === "cache" && round < 2; round++) {
    for (let i = 0; i < Number(amount); i++) {
      readSync(file, piece, 0, MIB, i * MIB);
      if (i % 8 === 0) await sleep(0);
    }
  }
  const bytes = 64 * 1024;
  const places = (Number(amount) * MIB) / bytes;
  for (let n = 1; mode === "thrash" && told === 0 && Date.now() < until; n++) {
    const at = Math.floor(Math.random() * places) * bytes;
    // What is read more than once is what the kernel takes for in use, and waited for when it has to be read anew.
    for (let again = 0; again < 3; again++) readSync(file, piece, 0, bytes, at);
    if (n % 50 === 0) await sleep(0);
  }
  closeSync(file);
}
say("level", watch.level);
say("told", told);
await watch.close();
