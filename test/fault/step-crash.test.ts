import { crashTests } from "../support/crash.js";
import { usually } from "../support/runs.js";

crashTests("sqlite", usually(6, 40));
