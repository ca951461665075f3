import { newKeyFile } from "../../keys/file-keys.js";
import { escapeLine } from "../render/escape.js";
import type { Session } from "../session.js";

interface Options {
  readonly renew?: boolean;
}

/** `agstate keys new FILE`. */
export async function run(
  session: Session,
  args: readonly string[],
  { renew = false }: Options,
): Promise<undefined> {
  const file = args[0] as string;
  const version = await newKeyFile(file, renew);
  const { out } = session;
  if (out.json) return void (await out.value({ file, version, renewed: renew }));
  const { paint } = out;
  const done = renew ? "Put a new version into" : "Made";
  await out.line(`${done} ${paint.bold(escapeLine(file))}: version ${paint.id(version)}.`);
  await out.line(
    paint.dim("Keep a copy of it elsewhere: whatever it encrypts is lost together with it."),
  );
  if (!renew) return;
  await out.line(
    paint.dim("New workflows use it; agstate keys rotate -w NAME wraps that of one anew."),
  );
}
