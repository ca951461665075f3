import { describe, it } from "vitest";
import { conformanceSuite } from "../../src/testing/index.js";
import { memoryTarget } from "./targets.js";

conformanceSuite(memoryTarget, { describe, it });
