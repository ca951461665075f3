import { resolve } from "node:path";
import { CLASSIFICATIONS, type Classification, isClassification } from "../core/classification.js";
import { AgstateError, isAgstateError } from "../core/errors.js";
import { isJsonObject } from "../core/json.js";
import { formatPointer } from "../core/json-pointer.js";
import { quoteForMessage } from "../core/names.js";
import { parseRetention, retentionText } from "../core/period.js";
import type { Environment } from "../core/variables.js";
import { compileIsolation } from "../objects/isolation.js";
import { type FilledUrl, fillUrl } from "./variables.js";

/** A region as a file of regions has it. */
export interface RegionConfig {
  /** The region's store, such as `postgres://app:${EU_PASSWORD}@eu.example/agents`. */
  readonly store: string;
  /** The id that the store must have (`agstate region list` shows it); left out, the one that was met first counts. */
  readonly storeId?: string;
  /** Which data it may hold. */
  readonly classifications: readonly Classification[];
}

/** What workflows declare that do not say otherwise. There is no default region, so that none is picked by mistake. */
export interface RegionDefaults {
  readonly classification?: Classification;
  readonly retentionPolicy?: string;
  readonly isolation?: readonly string[];
}

/** Where workflows may live: what a file of regions holds. */
export interface RegionsConfig {
  /** The store of the catalogue, which tells in which region each workflow lives; its URL, or that and its id. */
  readonly catalogue: string | { readonly store: string; readonly storeId?: string };
  readonly regions: Readonly<Record<string, RegionConfig>>;
  readonly defaults?: RegionDefaults;
}

/** A store that the configuration names. */
export interface NamedStore extends FilledUrl {
  readonly storeId: string | undefined;
}

export interface CheckedRegion extends NamedStore {
  readonly name: string;
  readonly classifications: readonly Classification[];
}

/** A configuration that is sound, with its variables filled in. */
export interface CheckedRegions {
  /** How messages name it. */
  readonly what: string;
  readonly catalogue: NamedStore;
  readonly regions: ReadonlyMap<string, CheckedRegion>;
  readonly defaults: RegionDefaults;
}

/** What a configuration is read with. */
export interface ReadRegions {
  /** How messages name it, such as `regions file "regions.json"`. */
  readonly what: string;
  readonly environment: Environment;
  /** The folder from which `sqlite:` directories count. */
  readonly directory: string;
}

const REGION_NAME = /^[a-z0-9-]{1,63}$/;
const STORE_ID = /^[0-9a-f]{32}$/;
const SCHEMES = /^(?:sqlite|postgres|postgresql):/;

/**
 * Checks a configuration, and fills in its variables.
 *
 * @throws AgstateError `INVALID_VALUE` with the place as a JSON Pointer in `details.at`, and what is wrong there in
 *   `details.problem`; neither holds a value of a variable, or a password
 */
export function checkRegions(given: unknown, how: ReadRegions): CheckedRegions {
  const { what } = how;
  const all = objectAt(given, "", ["catalogue", "regions", "defaults"]);
  if (all.catalogue === undefined) {
    throw invalid("/catalogue", "is missing; it is the URL of the catalogue's store");
  }
  const catalogue = isJsonObject(all.catalogue)
    ? storeAt(objectAt(all.catalogue, "/catalogue", ["store", "storeId"]), "/catalogue", how)
    : urlAt(all.catalogue, undefined, "/catalogue", how);
  const named = objectAt(all.regions, "/regions");
  const regions = new Map<string, CheckedRegion>();
  for (const [name, region] of Object.entries(named)) {
    const at = `/regions${formatPointer([name])}`;
    const checked = regionAt(name, region, at, how);
    for (const other of regions.values()) refuseSame(checked, other, at);
    regions.set(name, checked);
  }
  if (regions.size === 0) throw invalid("/regions", "names no region; name at least one");
  return { what, catalogue, regions, defaults: defaultsAt(all.defaults) };
}

function regionAt(name: string, given: unknown, at: string, how: ReadRegions): CheckedRegion {
  if (!REGION_NAME.test(name)) {
    throw invalid(
      at,
      `is not a region's name: write 1 to 63 lower-case letters, digits and hyphens, such as "eu-1"`,
    );
  }
  const region = objectAt(given, at, ["store", "storeId", "classifications"]);
  const list = region.classifications;
  if (!Array.isArray(list) || list.length === 0) {
    throw invalid(
      `${at}/classifications`,
      `is not a list of what the region may hold: some of ${CLASSIFICATIONS.join(", ")}`,
    );
  }
  const classifications = list.map((one: unknown, i) => {
    const place = `${at}/classifications/${i}`;
    if (list.indexOf(one) !== i) throw invalid(place, "stands in the list twice; remove one");
    return classificationAt(one, place);
  });
  return { name, ...storeAt(region, at, how), classifications };
}

function classificationAt(given: unknown, at: string): Classification {
  if (isClassification(given)) return given;
  throw invalid(at, `is no classification; there are ${CLASSIFICATIONS.join(", ")}`);
}

function storeAt(given: Readonly<Record<string, unknown>>, at: string, how: ReadRegions) {
  const { storeId } = given;
  if (storeId !== undefined && !(typeof storeId === "string" && STORE_ID.test(storeId))) {
    throw invalid(
      `${at}/storeId`,
      "is not a store's id of 32 hex digits; agstate region list shows it, or leave it out",
    );
  }
  return urlAt(given.store, storeId, `${at}/store`, how);
}

function urlAt(
  given: unknown,
  storeId: string | undefined,
  at: string,
  { environment, directory }: ReadRegions,
): NamedStore {
  if (typeof given !== "string" || given === "") {
    throw invalid(at, "is not the URL of a store, such as postgres://USER@HOST/DATABASE");
  }
  const filled = fillUrl(given, environment);
  if ("problem" in filled) throw invalid(at, filled.problem);
  const { url } = filled;
  if (!SCHEMES.test(url)) {
    throw invalid(
      at,
      "is not the URL of a store that stays: write postgres://USER@HOST/DATABASE or sqlite:DIRECTORY",
    );
  }
  if (url.startsWith("sqlite:")) {
    if (url === "sqlite:") throw invalid(at, "names no directory; write sqlite:DIRECTORY");
    return { ...filled, url: `sqlite:${resolve(directory, url.slice(7))}`, storeId };
  }
  if (!URL.canParse(url)) {
    throw invalid(at, "is no PostgreSQL URL; write postgres://USER@HOST:PORT/DATABASE?schema=NAME");
  }
  return { ...filled, storeId };
}

function refuseSame(region: CheckedRegion, other: CheckedRegion, at: string): void {
  if (region.url === other.url) {
    throw invalid(`${at}/store`, `is the store of region ${other.name}, too; give each its own`);
  }
  if (region.storeId !== undefined && region.storeId === other.storeId) {
    throw invalid(`${at}/storeId`, `is that of region ${other.name}, too; each has its own store`);
  }
}

function defaultsAt(given: unknown): RegionDefaults {
  if (given === undefined) return {};
  const at = "/defaults";
  if (isJsonObject(given) && ("region" in given || "storageRegion" in given)) {
    throw invalid(
      at,
      "names a region, and there is no default region; each workflow names its own",
    );
  }
  const defaults = objectAt(given, at, ["classification", "retentionPolicy", "isolation"]);
  const { classification, retentionPolicy, isolation } = defaults;
  return {
    ...(classification === undefined
      ? {}
      : { classification: classificationAt(classification, `${at}/classification`) }),
    ...(retentionPolicy === undefined
      ? {}
      : { retentionPolicy: retentionAt(retentionPolicy, `${at}/retentionPolicy`) }),
    ...(isolation === undefined ? {} : { isolation: isolationAt(isolation, `${at}/isolation`) }),
  };
}

function retentionAt(given: unknown, at: string): string {
  try {
    return retentionText(parseRetention(given));
  } catch (error) {
    if (!isAgstateError(error, "INVALID_ARGUMENT")) throw error;
    throw invalid(at, `is no retention policy: ${error.message}`);
  }
}

function isolationAt(given: unknown, at: string): readonly string[] {
  if (!Array.isArray(given)) throw invalid(at, "is not a list of paths, such as /state/user/email");
  for (const [i, path] of given.entries()) {
    const place = `${at}/${i}`;
    if (typeof path !== "string") throw invalid(place, "is not a path, such as /state/user/email");
    if (given.indexOf(path) !== i) throw invalid(place, "stands in the list twice; remove one");
    try {
      compileIsolation([path]);
    } catch (error) {
      if (!isAgstateError(error)) throw error;
      throw invalid(place, `cannot be isolated: ${error.message}`);
    }
  }
  return given as string[];
}

/** The object, which may have these members; any where they are not given. */
function objectAt(
  given: unknown,
  at: string,
  members?: readonly string[],
): Readonly<Record<string, unknown>> {
  if (!isJsonObject(given)) throw invalid(at, "is not an object");
  for (const key of Object.keys(given)) {
    if (members === undefined || members.includes(key)) continue;
    throw invalid(
      at + formatPointer([key]),
      `is not known; there are ${members.map((name) => quoteForMessage(name)).join(", ")}`,
    );
  }
  return given;
}

function invalid(at: string, problem: string): AgstateError {
  const place = at === "" ? "the whole" : quoteForMessage(at);
  return new AgstateError("INVALID_VALUE", `${place} ${problem}`, { at, problem });
}
