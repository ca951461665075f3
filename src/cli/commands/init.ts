import { isAgstateError } from "../../core/errors.js";
import { type OpenStoreOptions, openStore } from "../../store.js";
import { escapeLine } from "../render/escape.js";
import { type Session, toUrl } from "../session.js";

/** `agstate init`: makes a store; on an existing one it says so and changes nothing. */
export async function run(
  session: Session,
  args: readonly string[],
  options: { region?: string },
): Promise<undefined> {
  const url = args[0] === undefined ? session.newStoreUrl() : toUrl(args[0]);
  const ways = session.waysOfAll;
  const existed = await exists(url, ways);
  const { region } = options;
  const store = await openStore(url, { ...ways, ...(region !== undefined && { region }) });
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

async function exists(url: string, ways: OpenStoreOptions): Promise<boolean> {
  try {
    await (await openStore(url, { ...ways, create: false })).close();
    return true;
  } catch (error) {
    if (isAgstateError(error, "STORE_NOT_FOUND")) return false;
    throw error;
  }
}
