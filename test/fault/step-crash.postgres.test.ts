import { crashTests } from "../support/crash.js";
import { usually } from "../support/runs.js";

crashTests("postgres", usually(4, 20));
