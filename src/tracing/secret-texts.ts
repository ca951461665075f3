import { type SecretKeys, secretKeys } from "../core/secret-keys.js";

/** What stands in the place of a secret. */
export const REDACTED = "[redacted]";

/**
 * Forms by which secrets are known wherever they stand. Each repetition is bounded or ends at what cannot be part of
 * it, so that the time for a text grows with its length, whatever it holds.
 */
const FORMS: readonly (readonly [form: RegExp, replacement: string])[] = [
  // PEM; one that was cut off is secret to its end.
  [
    /-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----|$)/g,
    REDACTED,
  ],
  // User and password of a URL; the user stays.
  [/(:\/\/[^\s/?#:@"'<>]{0,256}:)[^\s/"'<>]{1,2048}@/g, `$1${REDACTED}@`],
  // Passwords that hold a slash, which no URL may.
  [
    /(:\/\/[^\s/?#:@"'<>]{0,256}:)(?!\d{1,5}[/?#])(?:(?!:\/\/)[^\s"'<>]){1,2048}@/g,
    `$1${REDACTED}@`,
  ],
  [/\b(Bearer\s{1,3})[\w.~+/-]{6,}=*/gi, `$1${REDACTED}`],
  // A word of any other sense has no digit, and no capital after its first letter.
  [
    /\b([Bb]asic\s{1,3})(?=[A-Za-z]{0,512}(?:[0-9+/=]|[a-z][A-Z]))[A-Za-z0-9+/]{8,}=*/g,
    `$1${REDACTED}`,
  ],
  // JSON Web Tokens.
  [/(?<![\w-])eyJ[\w-]{5,}\.[\w-]{5,}(?:\.[\w-]*)*/g, REDACTED],
  // Keys that tell whose they are by their beginning.
  [/(?<![A-Za-z0-9])(?:sk|rk)[-_][\w-]{8,}/g, REDACTED],
  [/(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}/g, REDACTED],
  [/(?<![A-Za-z0-9])(?:gh[pousr]|github_pat|glpat|npm|hf)[-_]\w{16,}/g, REDACTED],
  [/(?<![A-Za-z0-9])xox[a-z]-[\w-]{8,}/g, REDACTED],
  [/(?<![A-Za-z0-9])AIza[\w-]{30,}/g, REDACTED],
];

/**
 * What stands before a value that is assigned: in JSON that is part of a text, queries of URLs, headers, settings, and in
 * sentences, where a key may have several words.
 */
const ASSIGNS =
  /(?<![\p{L}\p{N}_.-])((?:[\p{L}\p{N}_.-]{1,60} ){0,2}-{0,2}[\p{L}_][\p{L}\p{N}_.-]{0,200})\\*["']?\s{0,3}(?:=>|:|=)\s{0,3}/gu;

/** What stands before the value of an option that is the next word of a command. */
const OPTION = /(?<![\p{L}\p{N}_.-])(--?\p{L}[\p{L}\p{N}_-]{0,200})[ \t]{1,3}(?!-)/gu;

/** A value: what was replaced before, in quotes of any kind, or a word, with the scheme before it in headers. */
const VALUE =
  /\[redacted\]|(\\+["'])(?:(?!\1)[\s\S])*\1?|"(?:\\[\s\S]|[^"\\])*"?|'(?:\\[\s\S]|[^'\\])*'?|(?:(?:Bearer|Basic|Token|Digest|ApiKey)\s{1,3})?[^\s,;&"'\\})\]]+/y;

/** Headers whose values have several words. */
const WHOLE_LINE =
  /((?:^|[\r\n])[ \t]{0,8}(?:proxy-)?(?:authorization|cookie|set-cookie)\s{0,3}:)[^\r\n]+/gi;

const DEFAULT_KEYS = secretKeys();

/**
 * Replaces what looks like a secret in a text: keys and tokens known by their form, passwords in URLs, private keys, and what
 * is assigned to a key with a secret's name. What has none of those forms cannot be known as a secret.
 */
export function redactText(text: string, isSecret: SecretKeys = DEFAULT_KEYS): string {
  let clean = text;
  for (const [form, replacement] of FORMS) clean = clean.replace(form, replacement);
  clean = clean.replace(WHOLE_LINE, `$1 ${REDACTED}`);
  return [ASSIGNS, OPTION].reduce((now, before) => withoutValues(now, before, isSecret), clean);
}

/** Replaces each value that stands behind a key of a secret. */
function withoutValues(text: string, before: RegExp, isSecret: SecretKeys): string {
  let clean = "";
  let told = 0;
  for (const match of text.matchAll(before)) {
    const key = match[1] as string;
    const at = match.index + match[0].length;
    // What stands in the value of one before is gone with it.
    if (at < told || !isSecret(key)) continue;
    VALUE.lastIndex = at;
    const value = VALUE.exec(text)?.[0];
    if (value === undefined || !isSecret(key, measureOf(value))) continue;
    const [quote = ""] = /^\\*["']/.exec(value) ?? [];
    clean += `${text.slice(told, at)}${quote}${REDACTED}${quote}`;
    told = at + value.length;
  }
  return clean + text.slice(told);
}

/** A number where the text is one: what a measure is. */
function measureOf(value: string): string | number {
  return /^\d+(?:\.\d+)?$/.test(value) ? Number(value) : value;
}
