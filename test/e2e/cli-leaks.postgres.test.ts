import { afterAll, expect, it } from "vitest";
import { CliSandbox } from "../support/cli.js";
import { expectNone, newMarker } from "../support/leaks.js";
import { schemaOf, schemaPlace, serverUrl, withClient } from "../support/postgres.js";

const M = newMarker();
const box = new CliSandbox();
afterAll(() => box.remove());

const withPassword = () => {
  const url = new URL(serverUrl());
  url.password = M;
  return url.toString();
};
const withoutPassword = () => {
  const url = new URL(serverUrl());
  url.password = "";
  return url.toString();
};

it.each<[string[], () => NodeJS.ProcessEnv]>([
  [["log"], () => ({ AGSTATE_STORE: withPassword() })],
  [["log"], () => ({ AGSTATE_STORE: withoutPassword(), PGPASSWORD: M })],
  [["migrate"], () => ({ AGSTATE_STORE: withPassword() })],
  [["doctor"], () => ({ AGSTATE_STORE: withPassword() })],
  [["workflow", "list", "--regions", "regions.json"], () => ({ SECRET: M })],
  [["import", "--from", "langgraph-postgres"], () => ({})],
])("agstate %j tells no password that a server refuses", (args, environment) => {
  box.run(["init"]);
  const { host, pathname } = new URL(serverUrl());
  const url = `postgres://postgres:\${SECRET}@${host}${pathname}`;
  const region = { store: url, classifications: ["public"] };
  box.write("regions.json", JSON.stringify({ catalogue: url, regions: { eu: region } }));
  const more = args[0] === "import" ? [withPassword()] : [];
  for (const json of [[], ["--json"]]) {
    const { status, stdout, stderr } = box.run([...json, ...args, ...more], { env: environment() });
    expect(status).toBeGreaterThan(0);
    expect(stdout + stderr).toContain("password authentication failed");
    expectNone(stdout + stderr, [M], "the command");
  }
});

it("agstate commit tells nothing of a row that the server refuses", async () => {
  const url = schemaPlace();
  const env = { AGSTATE_STORE: url };
  box.ok(["init"], { env });
  box.ok(["workflow", "create", "w"], { env });
  await withClient((client) =>
    client.query(
      `ALTER TABLE ${schemaOf(url)}.commits ADD CONSTRAINT never CHECK (workflow_id IS NULL) NOT VALID`,
    ),
  );
  for (const json of [[], ["--json"]]) {
    const { status, stdout, stderr } = box.run([...json, "commit", "-", "-m", M], {
      env,
      input: JSON.stringify({ text: M }),
    });
    expect(status).toBeGreaterThan(0);
    expect(stderr).toContain("23514: check violation by constraint never of table commits");
    expectNone(stdout + stderr, [M], "the command");
  }
});
