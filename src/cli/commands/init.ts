import { isAgstateError } from "../../core/errors.js";
import { openStore } from "../../store.js";
import { escapeLine } from "../render/escape.js";
import { type Session, toUrl } from "../session.js";

/** `agstate init`: makes a store; on an existing one it says so and changes nothing. */
export async function run(
  session: Session,
  args: readonly string[],
  options: { region?: string },
): Promise<undefined> {
  const url = args[0] === undefined ? session.newStoreUrl() : toUrl(args[0]);
  const existed = await exists(url);
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

async function exists(url: string): Promise<boolean> {
  try {
    await (await openStore(url, { create: false })).close();
    return true;
  } catch (error) {
    if (isAgstateError(error, "STORE_NOT_FOUND")) return false;
    throw error;
  }
}
