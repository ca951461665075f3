import { crashTests } from "../support/crash.js";

crashTests("postgres", 20);
