/**
 * Puts the compiled SQLite binding where its package looks for a finished build before it compiles one,
 * so that another install of the same version on this machine takes seconds and not minutes.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const require = createRequire(import.meta.url);
const manifest = require.resolve("better-sqlite3/package.json");
const { cachedPrebuild, getDownloadUrl } = createRequire(manifest)("prebuild-install/util");
const { platform, arch } = process;
const url = getDownloadUrl({ pkg: require(manifest), platform, arch, "tag-prefix": "v" });
const kept = cachedPrebuild(url);
mkdirSync(dirname(kept), { recursive: true });
const built = join("build", "Release", "better_sqlite3.node");
execFileSync("tar", ["-czf", kept, "-C", dirname(manifest), built]);
console.log(`kept ${built} of better-sqlite3 for the next install`);
