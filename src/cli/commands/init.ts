import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { openStore } from "../../store.js";
import { escapeLine } from "../render/escape.js";
import type { Session } from "../session.js";

/** `agstate init`: makes a store; on an existing one it says so and changes nothing. */
export async function run(
  session: Session,
  args: readonly string[],
  options: { region?: string },
): Promise<undefined> {
  const url = args[0] === undefined ? session.newStoreUrl() : `sqlite:${resolve(args[0])}`;
  const existed = existsSync(join(url.slice("sqlite:".length), "store.db"));
  const store = await openStore(
    url,
    options.region === undefined ? {} : { region: options.region },
  );
  const description = await store.describe();
  await store.close();
  const { out } = session;
  if (out.json) return void (await out.value({ ...description, created: !existed }));
  const place = escapeLine(description.location);
  await out.line(
    existed ? `The store ${place} is there already.` : `Made an empty store in ${place}.`,
  );
  if (!existed) await out.line("Next: agstate workflow create NAME");
}
