/**
 * The layering of src: who may import whom.
 *
 * `core <- storage/port <- objects <- refs <- merge <- reviews <- the layers <- store <- the faces`;
 * layers do not import each other, nobody but the store imports a backend, and a package that one
 * part owns is known to that part only. See ARCHITECTURE.md.
 */

const LAYERS = ["steps", "governance", "residency", "keys", "staleness", "tracing", "pressure"];
const BACKENDS = ["memory", "sqlite", "postgres"];

/** Where each part lives. Every module of src belongs to exactly one. */
const parts = {
  core: "^src/core/",
  port: "^src/storage/port\\.ts$",
  rows: "^src/storage/rows/",
  ...Object.fromEntries(BACKENDS.map((name) => [name, `^src/storage/${name}/`])),
  decorators: "^src/storage/decorators/",
  objects: "^src/objects/",
  refs: "^src/refs/",
  merge: "^src/merge/",
  reviews: "^src/reviews/",
  ...Object.fromEntries(LAYERS.map((name) => [name, `^src/${name}/`])),
  // Its rules are a layer; what opens stores by them, the router, stands above the store.
  residency: "^src/residency/(?!router/)",
  store: "^src/store(\\.ts$|/)",
  router: "^src/residency/router/",
  testing: "^src/testing/",
  git: "^src/git/",
  transcripts: "^src/transcripts/",
  langgraph: "^src/langgraph/",
  opentelemetry: "^src/opentelemetry/",
  ui: "^src/ui/",
  mcp: "^src/mcp/",
  cli: "^src/cli/",
  index: "^src/index\\.ts$",
};

const spine = ["core", "port", "objects", "refs", "merge", "reviews"];
const below = (part) => spine.slice(0, spine.indexOf(part));
const library = [...spine, ...LAYERS, "decorators", "store"];

/** What each part may import, besides itself. */
const mayImport = {
  ...Object.fromEntries(spine.map((part) => [part, below(part)])),
  rows: ["core", "port"],
  ...Object.fromEntries(BACKENDS.map((part) => [part, ["core", "port", "rows", "decorators"]])),
  decorators: ["core", "port"],
  ...Object.fromEntries(LAYERS.map((part) => [part, spine])),
  store: [...spine, ...LAYERS, ...BACKENDS, "decorators"],
  router: library,
  testing: ["core", "port", "objects", "memory"],
  git: ["core", "port", "objects", "refs", "merge", "store"],
  transcripts: library,
  langgraph: library,
  opentelemetry: library,
  ui: library,
  mcp: library,
  cli: [...library, "router", "git", "transcripts", "langgraph", "opentelemetry", "ui", "mcp"],
  index: [...library, "router", "git"],
};

/** Packages and built-ins that only some parts may know. */
const owned = {
  "better-sqlite3": ["sqlite"],
  pg: ["postgres"],
  commander: ["cli"],
  "@opentelemetry/sdk-logs": ["opentelemetry"],
  "@opentelemetry/exporter-logs-otlp-http": ["cli"],
  "@opentelemetry/exporter-metrics-otlp-http": ["cli"],
  "@opentelemetry/exporter-trace-otlp-http": ["cli"],
  "@opentelemetry/resources": ["cli"],
  "@opentelemetry/sdk-metrics": ["cli"],
  "@opentelemetry/sdk-trace-node": ["cli"],
  "@langchain/core": ["langgraph"],
  "@langchain/langgraph-checkpoint": ["langgraph"],
  "@langchain/langgraph-checkpoint-postgres": ["langgraph"],
  "@langchain/langgraph-checkpoint-sqlite": ["langgraph"],
  "@noble/ciphers": ["keys"],
  "@noble/hashes": ["objects"],
  luxon: ["store"],
  undici: ["staleness"],
  "ipaddr.js": ["staleness"],
  "fast-json-stable-stringify": ["objects"],
};

const modulesOf = (names) => names.map((name) => parts[name]);

/** A package by name, whether it resolves to its code, to its types, or not at all. */
const packagePattern = (name) =>
  `(^|node_modules/)(${name}|@types/${name.replace(/^@(.+)\/(.+)$/, "$1__$2")})(/|$)`;

const partRules = Object.entries(mayImport).map(([part, allowed]) => ({
  name: `imports-of-${part}`,
  comment: `${part} imports only: ${[...allowed, "itself"].join(", ")}.`,
  severity: "error",
  from: { path: parts[part] },
  to: { path: "^src/", pathNot: modulesOf([part, ...allowed]) },
}));

const ownerRules = Object.entries(owned).map(([name, owners]) => ({
  name: `only-in-${owners.join("-")}:${name}`,
  comment: `${name} is known only to: ${owners.join(", ")}.`,
  severity: "error",
  from: { path: "^src/", pathNot: modulesOf(owners) },
  to: { path: packagePattern(name) },
}));

module.exports = {
  forbidden: [
    ...partRules,
    ...ownerRules,
    {
      name: "only-in-tracing:@opentelemetry/api",
      comment: "OpenTelemetry is known only to the tracing layer and the tracing decorator.",
      severity: "error",
      from: { path: "^src/", pathNot: [parts.tracing, "^src/storage/decorators/tracing"] },
      to: { path: packagePattern("@opentelemetry/api") },
    },
    {
      name: "hashing-only-in-objects",
      comment:
        "Hashing lives in objects, and what has keys in keys; the store may draw random bytes, and the conformance suite hashes apart from the code under test.",
      severity: "error",
      from: { path: "^src/", pathNot: modulesOf(["objects", "keys", "store", "testing"]) },
      to: { path: "^(node:)?crypto$" },
    },
    {
      name: "core-does-no-io",
      comment: "core is pure: no built-in module of Node.",
      severity: "error",
      from: { path: parts.core },
      to: { dependencyTypes: ["core"] },
    },
    {
      name: "every-module-has-a-part",
      comment: "A new folder of src needs its place in this file.",
      severity: "error",
      from: {},
      to: { path: "^src/", pathNot: Object.values(parts) },
    },
    {
      name: "every-importer-has-a-part",
      comment: "The same for a module that nobody imports, such as an entry point.",
      severity: "error",
      from: { path: "^src/", pathNot: Object.values(parts) },
      to: {},
    },
    {
      name: "no-import-from-outside",
      comment: "src does not import tests, benchmarks, examples or scripts.",
      severity: "error",
      from: { path: "^src/" },
      to: { path: "^(test|bench|examples|scripts|dist)/" },
    },
    {
      name: "no-cycle",
      comment: "No circular imports, not even of types.",
      severity: "error",
      from: {},
      to: { circular: true },
    },
    {
      name: "no-unresolvable",
      comment: "What is imported must be there.",
      severity: "error",
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: "no-undeclared-package",
      comment: "src uses what package.json declares for users, not what happens to be installed.",
      severity: "error",
      from: { path: "^src/" },
      to: {
        dependencyTypes: ["npm-dev", "npm-no-pkg", "npm-unknown"],
        // What a peer must bring is installed for the tests as well.
        dependencyTypesNot: ["npm-peer"],
      },
    },
  ],
  options: {
    doNotFollow: { path: ["node_modules"] },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "types", "node", "default"],
    },
  },
};
