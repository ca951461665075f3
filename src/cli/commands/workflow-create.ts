import { AgstateError } from "../../core/errors.js";
import { quoteForMessage } from "../../core/names.js";
import type { Classification, Phase, Placed } from "../../store/types.js";
import { readJson } from "../input.js";
import { shortId } from "../render/commit.js";
import { escapeLine } from "../render/escape.js";
import type { Session } from "../session.js";

interface Options {
  readonly state?: string;
  readonly classification?: string;
  readonly region?: string;
  readonly retention?: string;
  readonly isolate?: string[];
  readonly subjects?: string[];
  readonly place?: string[];
  readonly author?: string;
}

/** `agstate workflow create`. */
export async function run(
  session: Session,
  args: readonly string[],
  options: Options,
): Promise<undefined> {
  const id = args[0] as string;
  const state = options.state === undefined ? {} : { state: await readJson(options.state) };
  const holder = (await session.regions()) ?? (await session.store());
  const workflow = await holder.createWorkflow(id, {
    ...state,
    ...(options.classification === undefined
      ? {}
      : { classification: options.classification as Classification }),
    ...(options.region === undefined ? {} : { storageRegion: options.region }),
    ...(options.retention === undefined ? {} : { retentionPolicy: options.retention }),
    ...(options.isolate === undefined ? {} : { isolation: options.isolate }),
    ...(options.subjects === undefined ? {} : { subjects: options.subjects }),
    ...(options.place === undefined ? {} : { placement: options.place.map(placed) }),
    ...(options.author === undefined ? {} : { author: options.author }),
  });
  const head = await workflow.resolve("canonical");
  const { out } = session;
  if (out.json) return void (await out.value({ ...workflow.info, canonical: head }));
  await out.line(
    `Created workflow ${escapeLine(id)}; canonical is at ${out.paint.id(shortId(head))}.`,
  );
}

/** @throws AgstateError `INVALID_ARGUMENT` */
function placed(given: string): Placed {
  const at = given.lastIndexOf("=");
  const [part, region] = [given.slice(0, at), given.slice(at + 1)];
  if (at < 1 || region === "") {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `--place ${quoteForMessage(given)} is no part and region; write for example /state/customer=us, or inference=us`,
      { place: given },
    );
  }
  // What is no phase is told with those that there are.
  return part.startsWith("/") ? { path: part, region } : { phase: part as Phase, region };
}
