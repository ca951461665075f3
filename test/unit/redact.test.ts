import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ObjectId } from "../../src/core/ids.js";
import { secretKeys } from "../../src/core/secret-keys.js";
import { Withheld } from "../../src/core/withheld.js";
import type { JsonValue } from "../../src/index.js";
import { type PayloadOptions, redactor } from "../../src/tracing/redact.js";
import { redactText } from "../../src/tracing/secret-texts.js";
import { jsonValues } from "../support/json.js";
import { agstateError } from "../support/stores.js";

const MARKER = "hunter2-3f9c";

const SECRET_KEYS =
  `password Password PASSWORD dbPassword db_password DB-PASSWORD PGPASSWORD passWord password2 userPasswords
  passphrase secret clientSecret client_secret AWS_SECRET_ACCESS_KEY token accessToken access_token X-Auth-Token authtoken
  refresh_tokens GITHUB_TOKEN apiKey api_key api-key apikey APIKey X-Api-Key openai.api.key authorization Authorization
  Proxy-Authorization cookie Set-Cookie cookies credentials awsCredential privateKey private_key ssh-private-key session
  sessionId session_id access-key signingKey`.split(/\s+/);

const OPEN_KEYS =
  `tokens tokens_used max_tokens totalTokens monkey keyboard key keys publicKey author authored secretary passport
  compass sessions_open cookiecutter tokenizer bypass user name id message`.split(/\s+/);

/** A value with a part put into it, and the path to that. */
function planted(part: (inner: JsonValue) => JsonValue): fc.Arbitrary<JsonValue> {
  return fc
    .tuple(
      jsonValues(),
      fc.array(fc.oneof(fc.string({ unit: "grapheme" }), fc.nat(3)), { maxLength: 6 }),
    )
    .map(([inner, way]) =>
      way.reduceRight<JsonValue>(
        (value, step) =>
          typeof step === "string"
            ? { ...fillers, [step]: value }
            : Array.from({ length: 4 }, (_, i) => (i === step ? value : i)),
        part(inner),
      ),
    );
}
const fillers = { a: 1, zz: "text" };

describe("the names of secrets", () => {
  it("are known in any spelling, as whole words", () => {
    const isSecret = secretKeys();
    expect(SECRET_KEYS.filter((key) => !isSecret(key, "x"))).toEqual([]);
    expect(OPEN_KEYS.filter((key) => isSecret(key, "x"))).toEqual([]);
  });

  it("do not hide what is counted of a secret, unless it is a text", () => {
    const isSecret = secretKeys();
    expect(
      ["token_count", "tokenLimit", "session.length", "passwordSet"].filter((key) =>
        isSecret(key, 7),
      ),
    ).toEqual([]);
    expect(isSecret("token_count", MARKER)).toBe(true);
    expect(isSecret("otp", 123456)).toBe(true);
  });

  it("have the caller's beside them: by words, or by pattern, whatever its flags", () => {
    const isSecret = secretKeys(["customer name", /^x_/g]);
    expect(
      ["customerName", "CUSTOMER_NAME", "X-Customer-Name", "x_a", "x_b", "x_a"].map((key) =>
        isSecret(key),
      ),
    ).toEqual(Array(6).fill(true));
    expect(["customer", "names", "a_x_"].map((key) => isSecret(key))).toEqual([
      false,
      false,
      false,
    ]);
  });
});

describe("redactor", () => {
  it("replaces what stands below a secret's key, whatever it is and however deep, and leaves JSON", () => {
    fc.assert(
      fc.property(
        planted((inner) => ({
          some: 1,
          [SECRET_KEYS[0] as string]: { [MARKER]: [MARKER, inner] },
        })),
        fc.constantFrom(...SECRET_KEYS),
        (value, key) => {
          const renamed = JSON.parse(
            JSON.stringify(value).replaceAll('"password":', `${JSON.stringify(key)}:`),
          );
          const text = redactor({ maxBytes: 1e9 }).value(renamed);
          expect(text).not.toContain(MARKER);
          expect(text).toContain(`${JSON.stringify(key)}:"[redacted]"`);
          expect(() => JSON.parse(text)).not.toThrow();
        },
      ),
      { numRuns: 500 },
    );
  });

  it("gives any value that has no secret as it is, and the same when it is asked again", () => {
    fc.assert(
      fc.property(jsonValues(), (value) => {
        const { value: tell } = redactor({ maxBytes: 1e9 });
        const once = JSON.parse(tell(value)) as JsonValue;
        expect(JSON.parse(tell(once))).toEqual(once);
      }),
      { numRuns: 500 },
    );
    const plain = { a: [1, "two", null, { "b/c": true }], tokens_used: 12, __proto__x: "" };
    expect(JSON.parse(redactor().value(plain))).toEqual(plain);
  });

  it("looks into texts that are JSON, as the arguments of tool calls are, at any depth", () => {
    const args = JSON.stringify({
      to: "a",
      apiKey: MARKER,
      more: JSON.stringify([{ token: `a"${MARKER}\\` }]),
    });
    const text = redactor().value({ calls: [{ name: "send", arguments: args }] });
    expect(text).not.toContain(MARKER);
    expect(JSON.parse(JSON.parse(text).calls[0].arguments)).toEqual({
      to: "a",
      apiKey: "[redacted]",
      more: '[{"token":"[redacted]"}]',
    });
  });

  it("knows a value by the name that stands beside it: in headers, variables, arguments", () => {
    const { value } = redactor();
    expect(
      JSON.parse(
        value({
          env: [
            { name: "API_KEY", value: MARKER },
            { key: "db-password", value: { a: MARKER } },
            { name: "HOME", value: "/home" },
          ],
          headers: [
            ["Authorization", MARKER],
            ["accept", "*/*"],
          ],
          raw: ["Host", "h", "Cookie", MARKER, "Accept", "*/*"],
          args: ["--api-key", MARKER, "-v", "--token-limit", 5, `--password=${MARKER}`],
          required: ["name", "password", "email"],
        }),
      ),
    ).toEqual({
      env: [
        { name: "API_KEY", value: "[redacted]" },
        { key: "db-password", value: "[redacted]" },
        { name: "HOME", value: "/home" },
      ],
      headers: [
        ["Authorization", "[redacted]"],
        ["accept", "*/*"],
      ],
      raw: ["Host", "h", "Cookie", "[redacted]", "Accept", "*/*"],
      args: ["--api-key", "[redacted]", "-v", "--token-limit", 5, "--password=[redacted]"],
      required: ["name", "password", "email"],
    });
  });

  it("tells of what is withheld that it is", () => {
    const withheld = new Withheld(
      "w",
      { type: "blob", id: "0".repeat(64) as ObjectId },
      { reason: "erased" },
    );
    expect(redactor().value({ a: withheld as unknown as JsonValue })).toBe('{"a":"[withheld]"}');
  });

  it("replaces secrets in keys, too", () => {
    expect(redactor().value({ "sk-live-0123456789": 1 })).toBe('{"[redacted]":1}');
  });

  it("asks functions after that, from the whole to its parts, with what the one before has said", () => {
    const seen: unknown[] = [];
    const options: PayloadOptions = {
      redact: [
        (path, value) => {
          seen.push([path.join("/"), value]);
          return path.at(-1) === "card" ? undefined : value;
        },
        (_path, value) => (typeof value === "string" ? value.replace("Ann", "X") : value),
      ],
    };
    const given = { list: [{ card: "4111", by: "Ann" }], password: MARKER };
    expect(JSON.parse(redactor(options).value(given))).toEqual({
      list: [{ card: "[redacted]", by: "X" }],
      password: "[redacted]",
    });
    expect(JSON.stringify(seen)).not.toContain(MARKER);
    expect(seen.map((each) => (each as [string])[0])).toEqual([
      "",
      "list",
      "list/0",
      "list/0/card",
      "list/0/by",
    ]);
    expect(redactor(options).text("told by Ann")).toBe("told by X");
  });

  it("looks at what functions answer as at what it was given", () => {
    expect(redactor({ redact: () => ({ apiKey: MARKER }) }).value(1)).not.toContain(MARKER);
  });

  it("tells nothing where a function throws, or answers what is no JSON", () => {
    const failing = redactor({
      redact: () => {
        throw new Error(MARKER);
      },
    });
    expect(failing.value({ a: MARKER })).toBe("[redacted]");
    expect(failing.text(MARKER)).toBe("[redacted]");
    const round: Record<string, unknown> = {};
    round.round = round;
    expect(redactor({ redact: () => round as JsonValue }).value(1)).toBe("[redacted]");
    expect(redactor({ redact: () => 1n as unknown as JsonValue }).value(1)).toBe("[redacted]");
  });

  it("never throws and never tells more bytes than it may, whatever it is given", () => {
    fc.assert(
      fc.property(
        fc.anything(),
        fc.string({ unit: "binary" }),
        fc.integer({ min: 32, max: 200 }),
        (value, text, maxBytes) => {
          const { value: tell, text: tellText } = redactor({ maxBytes });
          for (const told of [tell(value as JsonValue), tellText(text)]) {
            expect(Buffer.byteLength(told)).toBeLessThanOrEqual(maxBytes);
            expect(told.isWellFormed()).toBe(true);
          }
        },
      ),
      { numRuns: 1000 },
    );
  });

  it("cuts between characters, after it has replaced, and says so", () => {
    const { value, text } = redactor({ maxBytes: 40 });
    const told = text("é".repeat(40));
    expect(told).toBe(`${"é".repeat(15)}... [cut]`);
    expect(text("a".repeat(40))).toBe("a".repeat(40));
    expect(value(["x".repeat(100)])).toMatch(/^\["x+\.\.\. \[cut\]$/);
    for (let pad = 0; pad < 40; pad++)
      expect(text(`${" ".repeat(pad)}Bearer ${MARKER}`)).not.toContain("hunter");
    // Of a long list only the beginning is walked.
    let asked = 0;
    const part = { toString: () => "x" };
    const list = Array.from({ length: 10_000 }, () =>
      Object.defineProperty({}, "a", { enumerable: true, get: () => asked++ && part }),
    );
    redactor({ maxBytes: 100 }).value(list as unknown as JsonValue);
    expect(asked).toBeLessThan(100);
  });

  it("refuses options that would do nothing, or not what they say", () => {
    const wrong = [
      { keys: "password" },
      { keys: [""] },
      { keys: ["--"] },
      { redact: 1 },
      { maxBytes: 0 },
      { maxBytes: 1.5 },
    ];
    for (const options of wrong) {
      expect(() => redactor(options as PayloadOptions)).toThrow(
        agstateError("INVALID_ARGUMENT") as Error,
      );
    }
  });
});

describe("redactText", () => {
  const jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P";
  const pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow+/abc\nxyz==\n-----END RSA PRIVATE KEY-----";
  it.each([
    ["401 for Bearer abc.DEF-123_x~/+==, again", "401 for Bearer [redacted], again"],
    ["Authorization: Basic dXNlcjpwYXNz", "Authorization: [redacted]"],
    ["sent Basic dXNlcjpwYXNz to it", "sent Basic [redacted] to it"],
    [
      "Incorrect API key provided: sk-proj-abcDEF123456.",
      "Incorrect API key provided: [redacted].",
    ],
    ["stripe sk_live_4eC39HqLyjWDarjtT1", "stripe [redacted]"],
    ["AKIAIOSFODNN7EXAMPLE is no user", "[redacted] is no user"],
    [`jwt ${jwt}.`, "jwt [redacted]"],
    ["ghp_0123456789abcdefghijABCDEFGHIJ012345", "[redacted]"],
    ["postgres://ann:p@ss:w0rd@db/x?a=b down", "postgres://ann:[redacted]@db/x?a=b down"],
    ["redis://:a/b+c@h:1", "redis://:[redacted]@h:1"],
    [`key ${pem} end`, "key [redacted] end"],
    [`cut ${pem.slice(0, 45)}`, "cut [redacted]"],
    ['body {"apiKey":"a\\"b c","n":1}', 'body {"apiKey":"[redacted]","n":1}'],
    [
      'body "{\\"apiKey\\":\\"a b\\",\\"n\\":1}"',
      'body "{\\"apiKey\\":\\"[redacted]\\",\\"n\\":1}"',
    ],
    ["GET /x?api_key=abc&n=1 failed", "GET /x?api_key=[redacted]&n=1 failed"],
    ["at url=/x?access_token=abc&n=1", "at url=/x?access_token=[redacted]&n=1"],
    ["password: token: abc", "password: [redacted] [redacted]"],
    ["mysql --password=abc -u ann", "mysql --password=[redacted] -u ann"],
    ["x --api-key 'a b' --verbose", "x --api-key '[redacted]' --verbose"],
    ["x --db-password abc; y", "x --db-password [redacted]; y"],
    ["DB_PASSWORD='a b' node", "DB_PASSWORD='[redacted]' node"],
    ["-H 'Authorization: Token abc def'", "-H 'Authorization: [redacted] def'"],
    ["GET /\r\nCookie: a=b; c=d\r\nAccept: x", "GET /\r\nCookie: [redacted]\r\nAccept: x"],
  ])("%j", (text, clean) => {
    expect(redactText(text)).toBe(clean);
    expect(redactText(clean)).toBe(clean);
  });

  it.each([
    "a basic understanding of the bearer",
    "tokens_used: 12, token_count: 7, max_tokens=100",
    "task-management and risk-assessment",
    "http://localhost:8080/a@b and http://[::1]:80/",
    "the key is under the mat, monkey: 5",
    "at Object.run (file:///srv/app/main.js:10:3)",
    "2030-01-01T12:00:00Z error: not found",
  ])("leaves %j", (text) => expect(redactText(text)).toBe(text));

  it("is done in time that grows with the text, whatever that holds", () => {
    const pieces = [
      "://a:",
      "://:",
      "eyJ",
      "eyJ-",
      "a: ",
      'a:"',
      'a:\\"',
      "password",
      "Bearer ",
      "Basic a",
      "-----BEGIN PRIVATE KEY-----",
      "aa ",
      "sk-",
      ".",
      "token=",
      'token:"',
      'token:\\"',
    ];
    for (const piece of pieces) {
      const text = piece.repeat(Math.ceil(200_000 / piece.length));
      expect(redactText(text).length).toBeLessThanOrEqual(text.length * 8);
    }
  });
});
