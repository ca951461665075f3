import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { HttpError, idempotentFetch, openStore, type ToolCall } from "../../src/index.js";
import { type Received, startHttpService } from "../support/http-service.js";
import { agstateError, all } from "../support/stores.js";

const KEY = "0123456789abcdef0123456789abcdef";
const call = (key: string | null = KEY, signal = new AbortController().signal) => ({ key, signal });

const say = (status: number, body = "", headers: Record<string, string> = {}) =>
  function answer(_: Received, response: ServerResponse) {
    response.writeHead(status, headers).end(body);
  };

async function refusal(asked: Promise<Response>): Promise<HttpError> {
  const error = await asked.then(
    () => "nothing",
    (error: unknown) => error,
  );
  if (!(error instanceof HttpError)) throw new Error(`it ended with ${String(error)}`);
  return error;
}

async function begin() {
  const store = await openStore("memory:");
  const workflow = await store.createWorkflow("w");
  return { workflow, branch: await workflow.branch({ agent: "a", branch: "x" }) };
}

describe("the key of a request", () => {
  it("is the step's, bare, beside the headers that the request has", async () => {
    const { url, received } = await startHttpService(say(201, "{}"));
    const init = { method: "POST", headers: { "X-Own": "1" }, body: "a" };
    expect((await idempotentFetch(call(), url, init)).status).toBe(201);
    await idempotentFetch(call(), new Request(`${url}/r`, init));
    await idempotentFetch(call(), new Request(`${url}/r`, init), { headers: [["X-Own", "2"]] });
    expect(
      received.map(({ method, key, body, headers }) => [method, key, body, headers["x-own"]]),
    ).toEqual([
      ["POST", KEY, "a", "1"],
      ["POST", KEY, "a", "1"],
      ["POST", KEY, "a", "2"],
    ]);
  });

  it("is not sent where there is none, as with reads and inference", async () => {
    const { url, received } = await startHttpService(say(200, "[]"));
    const { branch } = await begin();
    const keys: (string | null)[] = [];
    const tool = async (call: ToolCall) => {
      keys.push(call.key);
      return (await idempotentFetch(call, url, { headers: { A: "b" } })).json();
    };
    for (const action of ["read", "inference", "write"] as const) {
      await branch.step({ name: action, action }, tool);
    }
    expect(keys).toEqual([null, null, expect.stringMatching(/^[0-9a-f]{32}$/)]);
    expect(received.map(({ key }) => key ?? null)).toEqual(keys);
  });

  it("may be given by the caller too, also quoted as in the draft standard, and no other", async () => {
    const { url, received } = await startHttpService(say(200));
    const send = (value: string, key: string | null = KEY) =>
      idempotentFetch(call(key), url, { method: "POST", headers: { "idempotency-key": value } });
    await send(KEY);
    await send(`"${KEY}"`);
    await send("mine", null);
    await expect(send("mine")).rejects.toEqual(
      agstateError("INVALID_ARGUMENT", { given: "mine", key: KEY }),
    );
    const request = new Request(url, { headers: { "Idempotency-Key": "mine" } });
    await expect(idempotentFetch(call(), request)).rejects.toThrow(
      /has the Idempotency-Key "mine"/,
    );
    expect(received.map(({ key }) => key)).toEqual([KEY, `"${KEY}"`, "mine"]);
  });

  it("is the same however often the step is tried, so that a service has one effect", async () => {
    const effects = new Map<string, number>();
    const { url, received } = await startHttpService(({ key = "" }, response) => {
      effects.set(key, effects.get(key) ?? effects.size + 1);
      const status = [503, 409, 201][received.length - 1] as number;
      response.writeHead(status).end(JSON.stringify({ booking: effects.get(key) }));
    });
    const { workflow, branch } = await begin();
    const booked = await workflow.run(branch, (ctx) =>
      ctx.step(
        { name: "book", action: "write", retry: { attempts: 2, pauseMs: 1 } },
        async (call) => (await idempotentFetch(call, url, { method: "POST" })).json(),
      ),
    );
    expect(booked).toEqual({ booking: 1 });
    expect([...effects.keys()]).toEqual([received[0]?.key]);
    expect(received).toHaveLength(3);
    expect(await all(branch.steps({ name: "book" }))).toMatchObject([
      { attempt: 3, status: "completed", key: received[0]?.key },
    ]);
  });
});

describe("an answer that is not 2xx", () => {
  it("fails the step, and tells why under one code, live and on replay", async () => {
    const { url, received } = await startHttpService(
      say(402, '{\n  "detail": "the card was declined"\n}'),
    );
    const { workflow, branch } = await begin();
    const seen: unknown[] = [];
    const run = (isOver: boolean) =>
      workflow.run(branch, async (ctx) => {
        try {
          await ctx.step({ name: "pay", action: "write" }, (call) =>
            idempotentFetch(call, `${url}/pay?token=hidden#x`, { method: "post" }),
          );
        } catch (error) {
          const { name, code, message } = error as HttpError;
          seen.push({ name, code, message });
        }
        await ctx.step({ name: "tell", action: "inference" }, () => 1);
        if (!isOver) throw new Error("not yet");
      });
    await expect(run(false)).rejects.toThrow("not yet");
    await run(true);
    const message = `POST ${url}/pay was answered with 402: { "detail": "the card was declined" }`;
    const told = { name: "HttpError", code: "HTTP_402", message };
    expect(seen).toEqual([told, told]);
    expect(received).toHaveLength(1);
    expect(await all(branch.steps({ name: "pay" }))).toMatchObject([
      { status: "failed", error: told },
    ]);
  });

  it("is given with its status, headers and the beginning of its body, however long", async () => {
    const { url } = await startHttpService((_, response) => {
      response.writeHead(500, { "Retry-After": "7" });
      // A body that never ends.
      const more = () => {
        while (response.write("€".repeat(1000)));
        response.once("drain", more);
      };
      more();
    });
    const error = await refusal(idempotentFetch(call(), url));
    expect(error).toMatchObject({ method: "GET", url: `${url}/`, status: 500, code: "HTTP_500" });
    expect(error.headers.get("Retry-After")).toBe("7");
    expect(error.body).toMatch(/^€+$/);
    expect(Buffer.byteLength(error.body)).toBeLessThanOrEqual(8192);
    expect(error.message.length).toBeLessThan(300);
  });

  it("is told by its status alone when its body breaks off", async () => {
    const { url } = await startHttpService((_, response) => {
      response.writeHead(502, { "Content-Length": "100" });
      response.write("half", () => response.destroy());
    });
    const error = await refusal(idempotentFetch(call(), url));
    expect(error).toMatchObject({ status: 502, body: "half" });
  });
});

describe("a redirect", () => {
  const begin = async (status: number) => {
    const other = await startHttpService(say(200, "elsewhere"));
    const headers = { Location: `${other.url}/there?session=hidden` };
    return { other, ...(await startHttpService(say(status, "", headers))) };
  };

  it.each([301, 302, 303, 307, 308])(
    "by %i is not followed by a request with a key",
    async (status) => {
      const { url, other } = await begin(status);
      const error = await refusal(idempotentFetch(call(), url, { method: "POST", body: "a" }));
      expect(error.status).toBe(status);
      expect(error.message).toContain(`a redirect to ${other.url}/there (`);
      expect(error.message).not.toContain("hidden");
      expect(other.received).toEqual([]);
    },
  );

  it("is followed when the request says so, or has no key", async () => {
    const { url, other } = await begin(307);
    const init = { method: "POST", body: "a", redirect: "follow" } as const;
    expect(await (await idempotentFetch(call(), url, init)).text()).toBe("elsewhere");
    expect(await (await idempotentFetch(call(null), url)).text()).toBe("elsewhere");
    expect(other.received.map(({ method, key, body }) => [method, key, body])).toEqual([
      ["POST", KEY, "a"],
      ["GET", undefined, ""],
    ]);
  });
});

describe("a request", () => {
  it.each(["the call's", "its own", "the Request's"])("ends with %s signal", async (whose) => {
    const closed: Promise<unknown>[] = [];
    const given = new AbortController();
    const { url } = await startHttpService((_, response) => {
      closed.push(once(response, "close"));
      given.abort(new Error("enough"));
    });
    const { signal } = given;
    const request = new Request(url, whose === "the Request's" ? { signal } : {});
    const asked = idempotentFetch(
      call(KEY, whose === "the call's" ? signal : undefined),
      request,
      whose === "its own" ? { signal } : {},
    );
    await expect(asked).rejects.toThrow("enough");
    expect(closed).toHaveLength(1);
    await closed[0];
  });

  it("is sent by what the caller gives for it", async () => {
    const { url, received } = await startHttpService(say(200));
    const sent: unknown[] = [];
    const own: typeof fetch = (input, init) => {
      sent.push([input, Object.keys(init ?? {}).sort()]);
      return fetch(input, init);
    };
    await idempotentFetch(call(), url, { method: "PUT", fetch: own });
    expect(sent).toEqual([[url, ["headers", "method", "redirect", "signal"]]]);
    expect(received).toMatchObject([{ method: "PUT", key: KEY }]);
  });
});
