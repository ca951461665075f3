import { migrateStore } from "../../store.js";
import { escapeLine } from "../render/escape.js";
import { plural } from "../render/sizes.js";
import type { Session } from "../session.js";

/** `agstate migrate`: brings the store's schema up to date; with `--status` or `--dry-run` it only tells. */
export async function run(
  session: Session,
  _args: readonly string[],
  options: { readonly status?: boolean; readonly dryRun?: boolean },
): Promise<undefined> {
  const { out } = session;
  const dryRun = options.status === true || options.dryRun === true;
  const report = await migrateStore(session.storeUrl(), { dryRun });
  if (out.json) return void (await out.value({ ...report, dryRun }));
  const place = escapeLine(report.location);
  const { applied, pending } = report;
  if (options.status === true) {
    for (const name of applied) await out.line(`applied  ${escapeLine(name)}`);
  }
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
