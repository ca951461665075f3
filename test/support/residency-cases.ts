import { expect } from "vitest";
import type {
  CreateWorkflowOptions,
  ErrorCode,
  OpenRegionsOptions,
  RegionsConfig,
} from "../../src/index.js";
import type { Ground } from "./regions.js";
import { agstateError } from "./stores.js";

/** What nobody may create where `eu` may hold public and internal data, and `us` anything. */
export const REFUSED: [given: unknown, code: ErrorCode, details?: Record<string, unknown>][] = [
  [{}, "REGION_UNKNOWN", { region: null, near: [] }],
  [{ storageRegion: null }, "REGION_UNKNOWN", { region: null }],
  [{ storageRegion: "" }, "REGION_UNKNOWN", { region: "" }],
  [{ storageRegion: "ue" }, "REGION_UNKNOWN", { region: "ue", near: ["eu", "us"] }],
  [{ storageRegion: "EU" }, "REGION_UNKNOWN", { region: "EU", near: ["eu"] }],
  [{ storageRegion: " eu" }, "REGION_UNKNOWN", { region: " eu", near: ["eu"] }],
  [{ storageRegion: "mars" }, "REGION_UNKNOWN", { region: "mars", near: [] }],
  [{ storageRegion: "__proto__" }, "REGION_UNKNOWN"],
  [{ storageRegion: 1 }, "REGION_UNKNOWN"],
  [{ storageRegion: "x".repeat(10_000) }, "REGION_UNKNOWN"],
  [{ classification: "sensitive" }, "REGION_UNKNOWN"],
  [{ classification: "regulated" }, "REGION_UNKNOWN"],
  [
    { classification: "sensitive", storageRegion: "eu" },
    "REGION_REFUSED",
    { others: ["us"], allowed: ["public", "internal"] },
  ],
  [{ classification: "regulated", storageRegion: "eu" }, "REGION_REFUSED"],
  [{ classification: "secret", storageRegion: "us" }, "INVALID_ARGUMENT"],
  [{ classification: "", storageRegion: "us" }, "INVALID_ARGUMENT"],
  [{ storageRegion: "eu", retentionPolicy: "90 days" }, "INVALID_ARGUMENT"],
  [{ storageRegion: "eu", isolation: ["/email"] }, "INVALID_PATH"],
  [{ storageRegion: "eu", author: "a<b" }, "INVALID_NAME"],
  [{ storageRegion: "eu", state: { n: Number.NaN } }, "INVALID_VALUE"],
  [{ storageRegion: "eu", policies: { "/n": "most" } }, "INVALID_POLICY"],
];

/** The ground's configuration with `eu` of the lower classes. */
export function lowerEu({ config }: Ground): RegionsConfig {
  const eu = { ...config.regions.eu!, classifications: ["public", "internal"] as const };
  return { ...config, regions: { ...config.regions, eu } };
}

/** Something refused: with which code, without a write, and after opening which stores at most. */
export interface Refusal {
  readonly code: ErrorCode;
  readonly details?: Record<string, unknown> | undefined;
  readonly config: RegionsConfig;
  readonly opens?: readonly (string | null)[];
  readonly options?: OpenRegionsOptions;
}

/** Holds that creating fails closed: the error, no call that writes, and every byte of every store as before. */
export async function expectRefused(
  ground: Ground,
  given: CreateWorkflowOptions,
  { code, details = {}, config, opens, options = {} }: Refusal,
): Promise<void> {
  const before = await ground.contents();
  const opened: (string | null)[] = [];
  const { regions, writes } = await ground.open(
    {
      ...options,
      wrap: (storage, region) => {
        opened.push(region);
        return storage;
      },
    },
    config,
  );
  await expect(regions.createWorkflow("w", given)).rejects.toEqual(agstateError(code, details));
  await regions.close();
  expect(writes).toEqual([]);
  if (opens !== undefined) expect(opened).toEqual(opens);
  expect(await ground.contents()).toEqual(before);
}
