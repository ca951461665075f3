/**
 * Names of what is secret. A word that is none by itself stands with those that make it one: `tokens` are counted all over,
 * `refresh_tokens` are not.
 */
const SECRET_NAMES: readonly string[] = [
  "password",
  "passwords",
  "passwd",
  "pwd",
  "passphrase",
  "passphrases",
  "passcode",
  "secret",
  "secrets",
  "token",
  "access tokens",
  "api tokens",
  "auth tokens",
  "bearer tokens",
  "id tokens",
  "refresh tokens",
  "session tokens",
  "api key",
  "api keys",
  "access key",
  "access keys",
  "account key",
  "encryption key",
  "encryption keys",
  "private key",
  "private keys",
  "signing key",
  "signing keys",
  "ssh key",
  "authorization",
  "cookie",
  "cookies",
  "credential",
  "credentials",
  "session",
  "sid",
  "otp",
  "totp",
  "cvv",
  "cvc",
  "ssn",
  "connection string",
  "dsn",
  "jwt",
];

/** What ends a word that was written without telling its words apart, as in `PGPASSWORD` and `authtoken`. */
const RUN_TOGETHER =
  /(?:password|passwd|passphrase|secret|token|apikey|apikeys|accesskey|privatekey|credential|credentials|cookie|sessionid|authorization)$/;

/** What is told of a secret without being it, when it is a number or whether something is so: `token_count`, `session_length`. */
const MEASURES = new Set(
  "age budget count counts expired expiry index length limit limits rate set size total ttl usage used valid".split(
    " ",
  ),
);

/** How many keys' answers are remembered; the same few come with every payload. */
const REMEMBERED_MAX = 1000;

/** Whether what stands below a key is secret, by the key's name. */
export type SecretKeys = (key: string, value?: unknown) => boolean;

/**
 * Makes the judge of keys.
 *
 * @param more names beside those that are known: a text is matched by its words, whatever their case and whatever stands
 *   between them (`customer name` is `customerName` and `CUSTOMER_NAME`); a pattern is tried on the key as it is
 */
export function secretKeys(more: readonly (string | RegExp)[] = []): SecretKeys {
  const texts = more.filter((each) => typeof each === "string");
  // Joined, as `passWord`, `pass_word` and `password` are the same.
  const names = new Set(SECRET_NAMES.concat(texts).map((name) => wordsOf(name).join("")));
  const longest = Math.max(...[...names].map((name) => name.length));
  // With a flag that makes a pattern remember where it was, it would answer by turns.
  const patterns = more
    .filter((each) => each instanceof RegExp)
    .map(({ source, flags }) => new RegExp(source, flags.replace(/[gy]/g, "")));
  const remembered = new Map<string, "secret" | "measure" | "open">();

  const judge = (key: string) => {
    if (patterns.some((pattern) => pattern.test(key))) return "secret";
    const words = wordsOf(key);
    for (let from = 0; from < words.length; from++) {
      let joined = "";
      for (let to = from; to < words.length && joined.length < longest; to++) {
        joined += words[to];
        if (!names.has(joined)) continue;
        return words.slice(to + 1).some((word) => MEASURES.has(word)) ? "measure" : "secret";
      }
    }
    return words.some((word) => RUN_TOGETHER.test(word)) ? "secret" : "open";
  };

  return (key, value) => {
    let known = remembered.get(key);
    if (known === undefined) {
      known = judge(key);
      if (remembered.size >= REMEMBERED_MAX) remembered.clear();
      remembered.set(key, known);
    }
    return known === "secret" || (known === "measure" && !isMeasured(value));
  };
}

function isMeasured(value: unknown): boolean {
  return typeof value === "number" || typeof value === "boolean" || value === null;
}

/** The words of a name in camelCase, snake_case, kebab-case or any other, in lower case and without numbers behind them. */
function wordsOf(name: string): string[] {
  return name
    .normalize("NFKC")
    .replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, "$1 $2")
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, "$1 $2")
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .map((word) => word.replace(/(\p{L})\p{N}+$/u, "$1"))
    .filter((word) => word !== "");
}
