import { describe, expect, it } from "vitest";
import { type IdempotentRequest, idempotentFetch } from "../../src/index.js";
import { startHttpService } from "../support/http-service.js";
import { makeStore } from "../support/stores.js";

describe("what a step reads over HTTP", () => {
  async function resourcesAfter(
    headers: Record<string, string>,
    path: string,
    request: IdempotentRequest = {},
    action: "read" | "write" = "read",
  ) {
    const { url } = await startHttpService((_, response) =>
      response.writeHead(200, headers).end("x"),
    );
    const { store } = await makeStore("memory");
    const branch = await (await store.createWorkflow("w")).branch({ agent: "a", branch: "x" });
    await branch.step({ name: "get", action, memoize: true }, async (call) => {
      await (await idempotentFetch(call, `${url}${path}`, request)).text();
    });
    const { resources } = await branch.handoff({ summary: "g" });
    return resources.map(({ id, ...rest }) => ({ ...rest, id: id.slice(url.length) }));
  }

  it("is what the step relies on, in the version that the answer says it is of", async () => {
    const read = await resourcesAfter({ ETag: 'W/"7"' }, "/rules?page=2#top");
    expect(read).toEqual([
      {
        type: "http",
        id: "/rules?page=2",
        version: 'etag:W/"7"',
        tolerance: "exact",
        observedAt: expect.any(Number),
        steps: [1],
      },
    ]);
    const date = "Sun, 06 Nov 1994 08:49:37 GMT";
    expect(await resourcesAfter({ "Last-Modified": date }, "/x")).toMatchObject([
      { version: `last-modified:${date}` },
    ]);
    // What nobody can compare later is on record all the same: it will not be taken for fresh.
    expect(await resourcesAfter({}, "/x")).toMatchObject([{ id: "/x", version: null }]);
    expect(await resourcesAfter({ ETag: '"1"' }, "/x", {}, "write")).toMatchObject([{ id: "/x" }]);
  });

  it("may be tolerated, or left out, by whoever reads it", async () => {
    const etag = { ETag: '"7"' };
    const young = { relyOn: { maxAgeMs: 1000 } } as const;
    expect(await resourcesAfter(etag, "/x", young)).toMatchObject([
      { tolerance: { maxAgeMs: 1000 } },
    ]);
    expect(await resourcesAfter(etag, "/x", { relyOn: false })).toEqual([]);
    expect(await resourcesAfter(etag, "/x", { method: "POST", body: "b" })).toEqual([]);
    expect(await resourcesAfter(etag, "/x", { method: "HEAD" })).toEqual([]);
  });

  it("keeps no secret that its URL holds", async () => {
    const paths = [
      "/x?a=1&access_token=s3cr3t&sig=s3cr3t&X-Amz-Signature=s3cr3t",
      "/x?a=1&apiKey=s3cr3t&key=s3cr3t&client_secret=s3cr3t",
    ];
    for (const path of paths) {
      expect(await resourcesAfter({ ETag: '"7"' }, path)).toMatchObject([{ id: "/x?a=1" }]);
    }
  });
});
