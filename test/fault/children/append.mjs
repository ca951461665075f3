// Reads the head and commits on top of it, again when it lost, printing each
// id once the store has acknowledged it. Arguments: path, count, create.
import { ABSENT, at, blob, commit, head, move, open, REF } from "./store.mjs";

const [path, count, create] = process.argv.slice(2);
const storage = await open(path, create === "create");
for (let done = 0; done < Number(count); ) {
  const base = await head(storage);
  const next = commit({ parents: base ? [base] : [], message: "x".repeat(200 + (done % 7) * 300) });
  const answer = await storage.write({
    workflow: "w",
    objects: [blob(`beside ${next.id}`)],
    moves: [move(REF, base ? at(base) : ABSENT, [next])],
    atomic: true,
  });
  if (answer.moves[0].outcome === "conflict") continue;
  if (answer.moves[0].outcome !== "moved") throw new Error(JSON.stringify(answer));
  process.stdout.write(`${next.id}\n`);
  done++;
}
await storage.close();
