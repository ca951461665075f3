import { createHash, randomBytes } from "node:crypto";
import { environmentKeys, type KeyOptions, type KeyProvider } from "../../src/index.js";

/** Keys of this test alone, with what asks for them counted. */
export function testKeys(more: Omit<KeyOptions, "provider"> = {}): KeyOptions & {
  readonly asked: { wrap: number; unwrap: number };
  readonly environment: Record<string, string>;
} {
  const environment: Record<string, string> = {
    AGSTATE_KEY_DEFAULT: randomBytes(32).toString("base64"),
    AGSTATE_KEY_OTHER: randomBytes(32).toString("base64"),
  };
  const asked = { wrap: 0, unwrap: 0 };
  const keys = environmentKeys(environment);
  const provider: KeyProvider = {
    wrap: (...given) => {
      asked.wrap++;
      return keys.wrap(...given);
    },
    unwrap: (...given) => {
      asked.unwrap++;
      return keys.unwrap(...given);
    },
  };
  return { provider, asked, environment, ...more };
}

/** A text that compresses badly and that nothing else holds. */
export function marker(of: string): string {
  return `marker-${of}-${createHash("sha256").update(`${of}${Math.random()}`).digest("hex")}`;
}
