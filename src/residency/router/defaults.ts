import type { CreateWorkflowOptions } from "../../store/types.js";
import type { RegionDefaults } from "../config.js";

/** Fills in what the caller leaves out, and tells what that was. */
export function withDefaults(
  options: CreateWorkflowOptions,
  defaults: RegionDefaults,
): { readonly options: CreateWorkflowOptions; readonly defaulted: readonly string[] } {
  const left = Object.entries(defaults).filter(
    ([name]) => options[name as keyof RegionDefaults] === undefined,
  );
  return {
    options: { ...options, ...Object.fromEntries(left) },
    defaulted: left.map(([name]) => name).sort(),
  };
}
