import { describe, it } from "vitest";
import { conformanceSuite } from "../../src/testing/index.js";
import { sqliteTarget } from "./targets.js";

conformanceSuite(sqliteTarget, { describe, it });
