import type { JsonValue } from "../core/json.js";

export interface PayloadOptions {
  readonly maxBytes?: number;
}
export interface Redactor {
  value(value: JsonValue): string;
  text(text: string): string;
}
export function redactor(_options: PayloadOptions): Redactor {
  return { value: (value) => JSON.stringify(value), text: (text) => text };
}
