import { describe } from "vitest";
import { twoResumes } from "../support/two-resumes.js";

describe("a resume", () => twoResumes("sqlite"));
