import { AgstateError } from "../../core/errors.js";
import { quoteForMessage } from "../../core/names.js";
import { migrateStore } from "../../store.js";
import { escapeLine } from "../render/escape.js";
import { plural } from "../render/sizes.js";
import type { Session } from "../session.js";

interface Options {
  readonly status?: boolean;
  readonly dryRun?: boolean;
  readonly roles?: true | string;
  readonly distributed?: boolean;
}

/** `agstate migrate`: brings the store's schema up to date; with `--status` or `--dry-run` it only tells. */
export async function run(
  session: Session,
  _args: readonly string[],
  options: Options,
): Promise<undefined> {
  const { out } = session;
  const dryRun = options.status === true || options.dryRun === true;
  const roles = typeof options.roles === "string" ? namesOf(options.roles) : options.roles;
  const { distributed = false } = options;
  const setup = { ...(roles && { roles }), distributed };
  const report = await migrateStore(session.storeUrl(), { dryRun, ...setup });
  if (out.json) return void (await out.value({ ...report, dryRun }));
  const place = escapeLine(report.location);
  const { applied, pending } = report;
  if (options.status === true) {
    for (const name of applied) await out.line(`applied  ${escapeLine(name)}`);
  }
  if (roles !== undefined)
    await out.line("The roles have their rights; make logins members of one.");
  if (pending.length === 0) return void (await out.line(`The store ${place} is up to date.`));
  for (const name of pending) {
    await out.line(`${dryRun ? "pending  " : "applied  "}${escapeLine(name)}`);
  }
  await out.line(
    dryRun
      ? `${plural(pending.length, "migration", "migrations")} to be made by agstate migrate.`
      : `The store ${place} is up to date now.`,
  );
}

/** @throws AgstateError `INVALID_ARGUMENT` */
function namesOf(text: string) {
  const [writer, reader, maintainer, more] = text.split(",").map((name) => name.trim());
  if (writer && reader && maintainer && more === undefined) return { writer, reader, maintainer };
  throw new AgstateError(
    "INVALID_ARGUMENT",
    `--roles=${quoteForMessage(text)} does not name three roles; write --roles=WRITER,READER,MAINTAINER, or --roles alone`,
    { roles: text },
  );
}
