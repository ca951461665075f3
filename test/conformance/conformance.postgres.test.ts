import { describe, it } from "vitest";
import { conformanceSuite } from "../../src/testing/index.js";
import { postgresTarget } from "./targets.js";

conformanceSuite(postgresTarget(), { describe, it: it.concurrent });
