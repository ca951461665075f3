/**
 * A process that runs commands of the built command line, one after another.
 *
 * What a command sees is its own: arguments, environment, folder, input, output and exit code. What is
 * shared is what Node loads for it, which takes longer than most commands.
 *
 * Reads requests from file descriptor 3 and answers on 4: a length in four bytes, then JSON. Ends when
 * descriptor 3 does.
 */
import { readSync, writeSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const SIGNALS = ["SIGINT", "SIGTERM"];

function readExactly(length) {
  const bytes = Buffer.alloc(length);
  for (let at = 0; at < length; ) {
    const read = readSync(3, bytes, at, length - at, null);
    if (read === 0) return null;
    at += read;
  }
  return bytes;
}

function answer(value) {
  const body = Buffer.from(JSON.stringify(value));
  const bytes = Buffer.alloc(4 + body.length);
  bytes.writeUInt32LE(body.length);
  body.copy(bytes, 4);
  for (let at = 0; at < bytes.length; ) at += writeSync(4, bytes, at);
}

/** A stream that keeps what is written to it. */
function kept() {
  const chunks = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      chunks.push(chunk);
      done();
    },
  });
  return { stream, text: () => Buffer.concat(chunks).toString() };
}

function setOwn(name, value) {
  Object.defineProperty(process, name, { value, configurable: true, writable: true });
}

/** What keeps this process alive, as far as it is told. */
async function alive() {
  await pause(1);
  return process.getActiveResourcesInfo().sort();
}

/** Waits as the end of a process would: until nothing is left that was not there before the command. */
async function ended(before, lingerMs) {
  const until = Date.now() + lingerMs;
  do {
    if ((await alive()).length <= before.length) return null;
    await pause(5);
  } while (Date.now() < until);
  return `the command is done, and would not end: ${(await alive()).join(", ")}`;
}

async function run({ main, args, env, cwd, input, limitMs, lingerMs }, count) {
  const before = await alive();
  // The other side waits as long as this process lives.
  const limit = setTimeout(() => process.exit(1), limitMs).unref();
  const [out, err] = [kept(), kept()];
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
  Object.assign(process.env, env);
  process.chdir(cwd);
  process.argv = [process.execPath, main, ...args];
  process.exitCode = undefined;
  setOwn("stdin", Readable.from(input === "" ? [] : [Buffer.from(input)]));
  setOwn("stdout", out.stream);
  setOwn("stderr", err.stream);
  // The address is another each time, so that the program begins again; what it imports is loaded once.
  await import(`${pathToFileURL(main)}?run=${count}`);
  const status = Number(process.exitCode ?? 0);
  process.exitCode = undefined;
  for (const signal of SIGNALS) process.removeAllListeners(signal);
  const fault = await ended(before, lingerMs);
  clearTimeout(limit);
  return fault === null ? { status, stdout: out.text(), stderr: err.text() } : { fault };
}

for (let count = 1; ; count++) {
  const length = readExactly(4)?.readUInt32LE();
  if (length === undefined) break;
  answer(await run(JSON.parse(readExactly(length).toString()), count));
}
process.exit();
