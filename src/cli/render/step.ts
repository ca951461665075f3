import type { JsonValue } from "../../core/json.js";
import type { StepStatus } from "../../objects/commit.js";
import type { StepDetails } from "../../store/steps/list.js";
import { escapeLine } from "./escape.js";
import type { Paint } from "./paint.js";

/** A status in the colour of what it means. */
export function statusText(paint: Paint, status: StepStatus): string {
  switch (status) {
    case "completed":
      return paint.good(status);
    case "failed":
      return paint.bad(status);
    case "started":
      return paint.path("in doubt");
  }
}

/** A step as lines, what it was given and what came out last. */
export function stepLines(paint: Paint, step: StepDetails): string[] {
  const time = (date: Date | null) => (date === null ? "" : date.toISOString().replace("T", " "));
  const rows: [string, string][] = [
    ["step", `${step.number}  ${escapeLine(step.name)}`],
    ["status", statusText(paint, step.status)],
    ["action", step.action],
    ["attempt", String(step.attempt)],
    ["key", step.key ?? "none"],
    ["started", time(step.startedAt)],
    ["ended", time(step.completedAt)],
    ["commit", paint.id(step.commit)],
    ["input", jsonText(step.input)],
    ["output", jsonText(step.output)],
    ["calls", jsonText(step.toolCalls)],
    ["response", jsonText(step.llmResponse)],
    [
      "error",
      step.error === undefined ? "" : escapeLine(`${step.error.name}: ${step.error.message}`),
    ],
  ];
  return rows
    .filter(([, value]) => value !== "")
    .map(([label, value]) => `${paint.dim(label.padEnd(8))} ${value}`);
}

function jsonText(value: JsonValue | undefined): string {
  return value === undefined ? "" : escapeLine(JSON.stringify(value));
}
