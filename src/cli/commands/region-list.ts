import type { RegionStatus, StoreStatus } from "../../residency/router/regions.js";
import { EXIT_OF_CODE } from "../exit-codes.js";
import { WIDTH } from "../render/cut.js";
import { escapeLine } from "../render/escape.js";
import { wrap } from "../render/wrap.js";
import type { Session } from "../session.js";

/** The columns before a value: two spaces, what it is, and two spaces. */
const INDENT = 12;

/** How long a server that does not answer is asked: whoever looks at a list waits for it. */
const ASKING_MS = 5000;

/**
 * `agstate region list`: opens the catalogue and every region's store, and tells how each is. Ends with 0 when all can
 * be used, else with the exit code of the first that cannot.
 */
export async function run(session: Session): Promise<undefined | number> {
  const regions = await session.namedRegions({ busyTimeoutMs: ASKING_MS });
  const catalogue = await regions.catalogue();
  const all = await regions.regions();
  await print(session, "catalogue", catalogue);
  for (const region of all) await print(session, region.name, region);
  const bad = [catalogue, ...all].find(({ problem }) => problem !== null);
  return bad?.problem == null ? undefined : EXIT_OF_CODE[bad.problem.code];
}

async function print(
  { out }: Session,
  name: string,
  status: StoreStatus | RegionStatus,
): Promise<void> {
  const { url, storeId, problem } = status;
  const holds = "classifications" in status ? status.classifications : null;
  if (out.json) {
    const told = problem && { code: problem.code, message: problem.message };
    return out.value({
      ...(holds === null ? { catalogue: true } : { region: name, classifications: holds }),
      ...{ url, storeId, good: problem === null, problem: told },
    });
  }
  const { paint } = out;
  const state = problem === null ? paint.good("good") : paint.bad(problem.code);
  await out.line(`${paint.bold(name)}  ${state}`);
  const rows = [["store", escapeLine(url)]];
  if (storeId !== null) rows.push(["id", storeId]);
  if (holds !== null) rows.push(["may hold", holds.join(", ")]);
  if (problem !== null) rows.push(["problem", escapeLine(problem.message)]);
  for (const [label = "", text = ""] of rows) {
    const [first = "", ...rest] = wrap(text, WIDTH - INDENT);
    await out.line(`  ${label.padEnd(INDENT - 2)}${first}`);
    for (const line of rest) await out.line(`${" ".repeat(INDENT)}${line}`);
  }
}
