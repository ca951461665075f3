import { describe, it } from "vitest";
import { conformanceSuite } from "../../src/testing/index.js";
import { serverUrl } from "../support/postgres.js";
import { postgresTarget } from "./targets.js";

/** The functions are ordinary ones here; what is sent to them is what distributed tables are sent. */
const distributed = () => `${serverUrl()}?distributed=true`;

conformanceSuite(postgresTarget("postgres, distributed", distributed), {
  describe,
  it: it.concurrent,
});
