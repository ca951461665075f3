import { type Environment, fillIn, type VariableProblem, variablesOf } from "../core/variables.js";

/** A URL with its variables filled in, and how it may be shown. */
export interface FilledUrl {
  readonly url: string;
  /** As the file has it, without a password; variables stay unnamed values. */
  readonly shown: string;
  /** Texts that no message may hold. */
  readonly secrets: readonly string[];
}

/** The user and password of a server's URL. */
const USER_INFO = /^(postgres(?:ql)?:\/\/)([^/?#]*)@/;

/**
 * Fills in a URL's variables.
 *
 * In the user and password of a server's URL a value is percent-encoded, so that a secret may hold any
 * character; elsewhere it is put in as it is.
 */
export function fillUrl(template: string, environment: Environment): FilledUrl | VariableProblem {
  const variables = variablesOf(template, environment);
  if ("problem" in variables) return variables;
  const head = USER_INFO.exec(template)?.[0] ?? "";
  const url =
    fillIn(head, environment, encodeURIComponent) +
    fillIn(template.slice(head.length), environment);
  const inHead = variablesOf(head, environment) as readonly string[];
  // A variable that is all of a URL holds its password too.
  const secrets = [...inHead.map((name) => environment[name] as string), ...passwordsOf(url)];
  return { url, shown: withoutPassword(template), secrets: [...new Set(secrets)] };
}

/** The passwords in a server's URL, as they are and as they are written in it. */
function passwordsOf(url: string): string[] {
  if (!URL.canParse(url)) return [];
  const parsed = new URL(url);
  const { password } = parsed;
  const given = parsed.searchParams.get("password") ?? "";
  return [password, decoded(password), given, encodeURIComponent(given)].filter(Boolean);
}

/** Percent signs that encode nothing stay, as drivers read them. */
function decoded(text: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, (bytes) => {
    try {
      return decodeURIComponent(bytes);
    } catch {
      return bytes;
    }
  });
}

/** A URL as it may be shown: its variables are names, and a password that is written out is left out. */
function withoutPassword(template: string): string {
  return template
    .replace(/^([a-z]+:\/\/[^/?#:@]*):[^/?#]*@/, "$1@")
    .replace(/([?&]password=)[^&#]*/gi, "$1***");
}
