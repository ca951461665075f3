import { crashTests } from "../support/crash.js";

crashTests("sqlite", 40);
