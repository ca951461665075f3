import { expect, it } from "vitest";
import { openStore } from "../../src/index.js";
import { type CountingStorage, counting } from "../../src/storage/decorators/counting.js";
import { testKeys } from "../support/keys.js";

it("costs one more call where a workflow has keys, none where it has not, and three for a new subject", async () => {
  let counter: CountingStorage | undefined;
  const store = await openStore("memory:", {
    region: "eu",
    keys: testKeys(),
    wrap: (storage) => {
      counter = counting(storage);
      return counter.storage;
    },
  });
  const counted = async <T>(work: () => Promise<T>): Promise<[number, T]> => {
    counter?.reset();
    const answer = await work();
    return [counter?.counts().roundTrips ?? 0, answer];
  };
  const subjects = ["/state/users/{subject}"];
  const SECRET = { classification: "sensitive", storageRegion: "eu", subjects } as const;
  const [plain] = await counted(() => store.createWorkflow("plain"));
  const [secret] = await counted(() =>
    store.createWorkflow("secret", { ...SECRET, state: { users: { first: 1 } } }),
  );
  expect(secret).toBe(plain);
  expect((await counted(() => store.workflow("plain")))[0]).toBe(1);
  const [opened, workflow] = await counted(() => store.workflow("secret"));
  expect(opened).toBe(2);

  const branch = await workflow.branch({ agent: "a", branch: "b" });
  const set = (path: string, value: unknown) =>
    counted(() => branch.update([{ op: "set", path, value }]));
  // The state is read once.
  await set("/users/first", 1.5);
  expect((await set("/n", "one"))[0]).toBe(1);
  // It is looked for, made, and looked at again, as somebody else may have been first.
  expect((await set("/users/new", 1))[0]).toBe(4);
  expect((await set("/users/new", 2))[0]).toBe(1);
  expect((await set("/users/first", 2))[0]).toBe(1);
  await store.close();
});
