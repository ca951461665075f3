/** What `${NAME}` in a URL of a regions file stands for. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A URL with its variables filled in, and how it may be shown. */
export interface FilledUrl {
  readonly url: string;
  /** As the file has it, without a password; variables stay unnamed values. */
  readonly shown: string;
  /** Texts that no message may hold. */
  readonly secrets: readonly string[];
}

/** What is wrong with a URL's variables, in words that hold no value of one. */
export interface UrlProblem {
  readonly problem: string;
}

const VARIABLE = /\$\{([^}]*)\}/g;
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** The user and password of a server's URL. */
const USER_INFO = /^(postgres(?:ql)?:\/\/)([^/?#]*)@/;

/**
 * Fills in a URL's variables.
 *
 * In the user and password of a server's URL a value is percent-encoded, so that a secret may hold any
 * character; elsewhere it is put in as it is. A variable that is empty is missing: whoever forgot it must not reach
 * another place than they meant.
 */
export function fillUrl(template: string, environment: Environment): FilledUrl | UrlProblem {
  if (template.replace(VARIABLE, "").includes("${")) {
    return { problem: "has a variable that no } closes" };
  }
  const values: string[] = [];
  for (const [, name = ""] of template.matchAll(VARIABLE)) {
    if (!NAME.test(name)) {
      return {
        problem:
          "has a variable whose name is none; letters, digits and _ make one, such as EU_PASSWORD",
      };
    }
    const value = environment[name];
    if (value === undefined || value === "") {
      return { problem: `needs the environment variable ${name}, which is not set or is empty` };
    }
    values.push(value);
  }
  const fill = (text: string, encode: (value: string) => string) =>
    text.replace(VARIABLE, (_, name: string) => encode(environment[name] as string));
  const userInfo = USER_INFO.exec(template);
  const head = userInfo?.[0] ?? "";
  const url = fill(head, encodeURIComponent) + fill(template.slice(head.length), (value) => value);
  // A variable that is all of a URL holds its password too.
  const inHead = head === "" ? [] : [...head.matchAll(VARIABLE)];
  const secrets = [
    ...inHead.map(([, name]) => environment[name as string] as string),
    ...passwordsOf(url),
  ];
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
