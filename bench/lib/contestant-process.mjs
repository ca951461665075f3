import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/**
 * A contestant of `interleave` in a process of its own, so that what one needs of Node.js, as hooks
 * around every promise, costs the other nothing.
 *
 * @param script URL of what it runs: it answers with a message when it is ready, and each that it is sent
 * @param steps how many steps a round does
 * @param what what the script is told, as JSON
 * @returns the contestant, with `rounds`, how many it did, `check` and `close`
 */
export async function contestantProcess(script, name, steps, what) {
  // What a peer's way with its driver is warned of says nothing here.
  const child = fork(fileURLToPath(script), [JSON.stringify(what)], {
    execArgv: ["--no-deprecation"],
  });
  // It must not outlive this process.
  const kill = () => child.kill();
  process.on("exit", kill);
  const exit = once(child, "exit").then(([code, signal]) => {
    process.removeListener("exit", kill);
    return code === 0 ? undefined : new Error(`${name} ended with ${signal ?? `status ${code}`}`);
  });
  const answer = async () => {
    const [message] = await Promise.race([
      once(child, "message"),
      exit.then((error) => Promise.reject(error ?? new Error(`${name} is over`))),
    ]);
    return message;
  };
  const ask = (message) => {
    child.send(message);
    return answer();
  };
  const contestant = {
    name,
    steps,
    rounds: 0,
    round() {
      contestant.rounds++;
      return ask("round");
    },
    check: () => ask("check"),
    async close() {
      if (child.connected) child.send("close");
      const error = await exit;
      if (error !== undefined) throw error;
    },
  };
  await answer();
  return contestant;
}
