import { mkdtempSync, readFileSync, rmSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { isAgstateError, openRegions, openStore, type RegionStatus } from "../../src/index.js";
import { ALL, variable, writeRegionsFile } from "../support/regions.js";
import { agstateError } from "../support/stores.js";

const directory = mkdtempSync(join(tmpdir(), "agstate-regions-file-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const EU = { store: "sqlite:eu", classifications: ["public"] };
const ID = "0123456789abcdef".repeat(2);

const fileOf = (config: unknown) => writeRegionsFile(directory, config);
const withRegions = (regions: unknown, more: object = {}) => ({
  catalogue: "sqlite:c",
  regions,
  ...more,
});

async function errorOf(config: unknown, environment = {}) {
  try {
    await (await openRegions(fileOf(config), { environment })).close();
  } catch (error) {
    if (isAgstateError(error)) return error;
    throw error;
  }
  return undefined;
}

describe("a file of regions", () => {
  it("may say all that there is, and names directories from where it stands", async () => {
    await (await openStore(`sqlite:${join(directory, "eu")}`, { region: "eu" })).close();
    await (await openStore(`sqlite:${join(directory, "c")}`)).close();
    const config = withRegions(
      { eu: EU, "a-1": { store: "postgresql://h/d", storeId: ID, classifications: ALL } },
      { defaults: { classification: "public", retentionPolicy: "P1D", isolation: ["/step/x"] } },
    );
    await using regions = await openRegions(
      fileOf({ ...config, catalogue: { store: "sqlite:c" } }),
    );
    await (await regions.store("eu")).describe();
  });

  it("is as the documentation shows it", async () => {
    const page = readFileSync(new URL("../../docs/residency.md", import.meta.url), "utf8");
    const shown = /^ {4}\{\n[\s\S]*?^ {4}\}\n/m.exec(page)?.[0] ?? "";
    const names = ["CATALOGUE_PASSWORD", "EU_PASSWORD", "US_PASSWORD"];
    for (const name of names) expect(shown).toContain(variable(name));
    const environment = Object.fromEntries(names.map((name) => [name, "p"]));
    await (await openRegions(fileOf(shown), { environment })).close();
  });

  const REFUSED: [unknown, at: string][] = [
    [[], ""],
    [{ regions: { eu: EU } }, "/catalogue"],
    [{ catalogue: 1, regions: { eu: EU } }, "/catalogue"],
    [{ catalogue: {}, regions: { eu: EU } }, "/catalogue/store"],
    [{ catalogue: { store: "sqlite:c", id: ID }, regions: { eu: EU } }, "/catalogue/id"],
    [{ catalogue: "memory:", regions: { eu: EU } }, "/catalogue"],
    [{ catalogue: "sqlite:c" }, "/regions"],
    [withRegions({}), "/regions"],
    [withRegions([]), "/regions"],
    [withRegions({ eu: EU }, { region: "eu" }), "/region"],
    ...["", " eu", "eu ", "EU", "eu_1", "é", "e/u", "a".repeat(64)].map(
      (name): [unknown, string] => [
        withRegions({ [name]: EU }),
        `/regions/${name.replace("/", "~1")}`,
      ],
    ),
    [withRegions({ eu: "sqlite:eu" }), "/regions/eu"],
    [withRegions({ eu: { ...EU, url: "x" } }), "/regions/eu/url"],
    [withRegions({ eu: { classifications: ["public"] } }), "/regions/eu/store"],
    [withRegions({ eu: { ...EU, store: "" } }), "/regions/eu/store"],
    [withRegions({ eu: { ...EU, store: "sqlite:" } }), "/regions/eu/store"],
    [withRegions({ eu: { ...EU, store: "memory:" } }), "/regions/eu/store"],
    [withRegions({ eu: { ...EU, store: "eu" } }), "/regions/eu/store"],
    [withRegions({ eu: { ...EU, store: "postgres://a:b:c@/x y" } }), "/regions/eu/store"],
    [withRegions({ eu: EU, us: EU }), "/regions/us/store"],
    [withRegions({ eu: { ...EU, storeId: "abc" } }), "/regions/eu/storeId"],
    [
      withRegions({ eu: { ...EU, storeId: ID }, us: { ...EU, store: "sqlite:us", storeId: ID } }),
      "/regions/us/storeId",
    ],
    [withRegions({ eu: { store: "sqlite:eu" } }), "/regions/eu/classifications"],
    [withRegions({ eu: { ...EU, classifications: [] } }), "/regions/eu/classifications"],
    [withRegions({ eu: { ...EU, classifications: ["Public"] } }), "/regions/eu/classifications/0"],
    [
      withRegions({ eu: { ...EU, classifications: ["public", "internal", "public"] } }),
      "/regions/eu/classifications/2",
    ],
    [withRegions({ eu: EU }, { defaults: [] }), "/defaults"],
    [withRegions({ eu: EU }, { defaults: { region: "eu" } }), "/defaults"],
    [withRegions({ eu: EU }, { defaults: { storageRegion: "eu" } }), "/defaults"],
    [withRegions({ eu: EU }, { defaults: { class: "public" } }), "/defaults/class"],
    [withRegions({ eu: EU }, { defaults: { classification: "" } }), "/defaults/classification"],
    [
      withRegions({ eu: EU }, { defaults: { retentionPolicy: "30 days" } }),
      "/defaults/retentionPolicy",
    ],
    [withRegions({ eu: EU }, { defaults: { isolation: "/state/x" } }), "/defaults/isolation"],
    [withRegions({ eu: EU }, { defaults: { isolation: ["/x/y"] } }), "/defaults/isolation/0"],
    [
      withRegions({ eu: EU }, { defaults: { isolation: ["/state/x", "/state/x"] } }),
      "/defaults/isolation/1",
    ],
  ];

  it.each(REFUSED)("refuses what is wrong in %j, and says where", async (config, at) => {
    const error = await errorOf(config);
    expect(error).toEqual(agstateError("INVALID_VALUE", { at, line: expect.any(Number) }));
    expect(error?.message).toContain("regions.json");
    expect(error?.message).toMatch(/line \d+, column \d+/);
  });

  it("refuses a name that stands twice, text that is not JSON, and what is no file", async () => {
    const eu = JSON.stringify(EU);
    const twice = `{"catalogue":"sqlite:c","regions":{"eu":${eu},"eu":${eu}}}`;
    expect(await errorOf(twice)).toEqual(agstateError("INVALID_VALUE"));
    expect(await errorOf("")).toEqual(agstateError("INVALID_VALUE"));
    expect(await errorOf("{")).toEqual(agstateError("INVALID_VALUE"));
    await expect(openRegions(join(directory, "none.json"))).rejects.toEqual(
      agstateError("INVALID_ARGUMENT", { file: join(directory, "none.json") }),
    );
    const large = fileOf("{}");
    truncateSync(large, 1024 * 1024 + 1);
    await expect(openRegions(large)).rejects.toEqual(
      agstateError("LIMIT_EXCEEDED", { limit: 1024 * 1024 }),
    );
  });

  it("names a variable that is missing or empty, and never shows what another holds", async () => {
    const store = `postgres://app:${variable("EU_PW")}@h:${variable("EU_PORT")}/d`;
    for (const environment of [{ EU_PW: "hunter2" }, { EU_PW: "hunter2", EU_PORT: "" }]) {
      const error = await errorOf(withRegions({ eu: { ...EU, store } }), environment);
      expect(error?.details).toMatchObject({ at: "/regions/eu/store" });
      expect(error?.message).toContain("EU_PORT");
      expect(JSON.stringify([error?.message, error?.details])).not.toContain("hunter2");
    }
    for (const bad of [`sqlite:${variable("A").slice(0, -1)}`, ...["", "A B", "1"].map(variable)]) {
      const error = await errorOf(withRegions({ eu: { ...EU, store: bad } }), { A: "a", 1: "b" });
      expect(error).toEqual(agstateError("INVALID_VALUE", { at: "/regions/eu/store" }));
    }
    // Not a URL with what the variable holds, which is not said.
    const error = await errorOf(withRegions({ eu: { ...EU, store } }), {
      EU_PW: "hunter2",
      EU_PORT: "99999x",
    });
    expect(error).toEqual(agstateError("INVALID_VALUE", { at: "/regions/eu/store" }));
    expect(JSON.stringify([error?.message, error?.details])).not.toMatch(/hunter2|99999x/);
  });

  it("puts a secret of any characters into a server's URL, and shows none", async () => {
    await (await openStore(`sqlite:${join(directory, "catalogue")}`)).close();
    await fc.assert(
      fc.asyncProperty(fc.string({ minLength: 8, unit: "grapheme" }), async (secret) => {
        fc.pre(secret.isWellFormed() && !/\0/.test(secret));
        const places = [
          `postgres://app:${variable("PW")}@127.0.0.1:1/d`,
          variable("WHOLE"),
          `postgres://app:${encodeURIComponent(secret)}@127.0.0.1:1/d`,
          `postgres://127.0.0.1:1/d?user=app&password=${encodeURIComponent(secret)}`,
        ];
        for (const store of places) {
          const whole = `postgres://app:${encodeURIComponent(secret)}@127.0.0.1:1/d`;
          const config = withRegions({ eu: { ...EU, store } });
          await using regions = await openRegions(
            { ...config, catalogue: `sqlite:${join(directory, "catalogue")}` } as never,
            { environment: { PW: secret, WHOLE: whole }, limits: { busyTimeoutMs: 1 } },
          );
          const [eu] = (await regions.regions()) as [RegionStatus];
          // Nobody listens there: the URL was one, and the server asked.
          expect(eu.problem).toEqual(agstateError("STORE_UNAVAILABLE", { region: "eu" }));
          const { message, details, cause } = eu.problem as Error & { details: object };
          const told = JSON.stringify([eu.url, message, details, String(cause)]);
          expect(told).not.toContain(JSON.stringify(secret).slice(1, -1));
          expect(told).not.toContain(encodeURIComponent(secret));
        }
      }),
      { numRuns: 10 },
    );
  });
});
