import { readFileSync } from "node:fs";
import { MIGRATIONS } from "./files.js";
import { quoteIdentifier } from "./schema.js";

/**
 * Reads an SQL file as psql would give it to the server: `:"name"` stands for a
 * variable as an identifier, `:'name'` for it as a string; lines that begin with
 * a backslash, psql's own commands, are left out.
 *
 * @param name relative to the folder of migrations
 * @throws Error for a variable that has no value
 */
export function readScript(name: string, variables: Readonly<Record<string, string>>): string {
  const text = readFileSync(new URL(name, MIGRATIONS), "utf8");
  return text
    .replaceAll(/^\\.*$/gm, "")
    .replaceAll(/:(["'])([a-z]+)\1/g, (_, quote: string, variable: string) => {
      const value = variables[variable];
      if (value === undefined) throw new Error(`${name} has no value for ${variable}`);
      return quote === '"' ? quoteIdentifier(value) : quoteLiteral(value);
    });
}

/** A text as an SQL string that means the same whatever `standard_conforming_strings` says. */
function quoteLiteral(text: string): string {
  const quoted = `'${text.replaceAll("'", "''").replaceAll("\\", "\\\\")}'`;
  return text.includes("\\") ? ` E${quoted}` : quoted;
}
