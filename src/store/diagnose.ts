import { type Finding, good } from "../core/finding.js";
import { unknownStore } from "./unknown-store.js";

/** What a look at a store, and at what it stands on, found. */
export interface Diagnosis {
  readonly backend: "memory" | "sqlite" | "postgres";
  /** The store's place, without a password. */
  readonly location: string;
  readonly findings: readonly Finding[];
}

/**
 * Looks at a store and at what it stands on: reachable, up to date, the rights to use it, settings
 * that could lose what was acknowledged. Writes nothing to the store, and also works where the
 * store cannot be opened: what hinders is a finding then.
 *
 * @param url as of `openStore`
 * @throws AgstateError `INVALID_ARGUMENT`
 */
export async function diagnoseStore(url: string): Promise<Diagnosis> {
  const colon = url.indexOf(":");
  switch (url.slice(0, colon + 1)) {
    case "memory:":
      return {
        backend: "memory",
        location: "memory:",
        findings: [good("store", "The store is gone when the process ends, as it should be.")],
      };
    case "sqlite:": {
      const { diagnoseSqlite } = await import("../storage/sqlite/diagnose.js");
      return { backend: "sqlite", ...(await diagnoseSqlite(url.slice(colon + 1) || ".agstate")) };
    }
    case "postgres:":
    case "postgresql:": {
      const { diagnosePostgres } = await import("../storage/postgres/diagnose.js");
      return { backend: "postgres", ...(await diagnosePostgres(url)) };
    }
    default:
      throw unknownStore(url);
  }
}
