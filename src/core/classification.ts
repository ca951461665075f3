/** How sensitive a workflow's data is, from what anybody may see to what the law watches over. */
export const CLASSIFICATIONS = ["public", "internal", "sensitive", "regulated"] as const;

export type Classification = (typeof CLASSIFICATIONS)[number];

/** What a workflow is that says nothing. */
export const DEFAULT_CLASSIFICATION: Classification = "internal";

export function isClassification(given: unknown): given is Classification {
  return (CLASSIFICATIONS as readonly unknown[]).includes(given);
}
