import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { CliSandbox } from "../support/cli.js";
import { startHttpService } from "../support/http-service.js";

const README = fileURLToPath(new URL("../../README.md", import.meta.url));

/** The program in the README whose first line names it, as a reader would copy it. */
function programOfReadme(name: string): string {
  const lines = readFileSync(README, "utf8").split("\n");
  const from = lines.findIndex((line) => line.startsWith(`    // ${name}`));
  const length = lines.slice(from).findIndex((line) => line !== "" && !line.startsWith("    "));
  return lines
    .slice(from, from + length)
    .map((line) => line.slice(4))
    .join("\n");
}

describe("the README's example of work that survives a kill", () => {
  const box = new CliSandbox();
  afterAll(() => box.remove());

  it("books once, though it is killed when the booking is made and not answered", async () => {
    box.linkPackage();
    box.write("book.mjs", programOfReadme("book.mjs"));
    box.ok(["init"]);
    box.ok(["workflow", "create", "trip-42"]);

    const effects = new Map<string, string>();
    const lives: ChildProcess[] = [];
    const { url, received } = await startHttpService(({ path, key, body }, response) => {
      if (path === "/model") return void response.end('{"by":"train"}');
      if (key !== undefined && !effects.has(key)) effects.set(key, body);
      if (lives.length === 1) lives[0]?.kill("SIGKILL");
      else response.end('{"seat":"12A"}');
    });
    const start = () => {
      const life = spawn(process.execPath, ["book.mjs", url], { cwd: box.directory });
      lives.push(life);
      return life;
    };
    expect(await once(start(), "exit")).toEqual([null, "SIGKILL"]);
    expect(box.ok(["resume", "booker/try-1"])).toMatch(/^1 step begun and not sealed/m);

    const life = start();
    let said = "";
    life.stdout.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    expect(await once(life, "close")).toEqual([0, null]);
    expect(said).toBe('{"seat":"12A"}\n');
    expect(received.map(({ path }) => path)).toEqual(["/model", "/bookings", "/bookings"]);
    expect([...effects.values()]).toEqual(['{"by":"train"}']);
    expect(box.json(["cat", "booker/try-1", "/seat"])).toEqual([{ seat: "12A" }]);
  });
});
