import { once } from "node:events";
import { createServer, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

/** The longest that the service takes before an effect, and again before it answers, in milliseconds. */
const SLOW_MAX_MS = 3;

/**
 * Starts the outside world of one round: an HTTP service on loopback that has effects and answers paid calls.
 *
 * `POST /effect?name=` has an effect; with `lose` it has it and answers 503. Where keys are honoured, a
 * second request with the same `Idempotency-Key` has none and gets the first answer. `POST /paid?name=`
 * answers otherwise each time, as a model does. `GET /happened?key=` tells the answer that an effect gave.
 */
export async function startService({ honoursKeys, random }) {
  const effects = [];
  const requests = [];
  const paid = new Map();
  const sockets = new Set();
  const slow = () => sleep(random() * SLOW_MAX_MS);
  const happened = (key) => effects.find((effect) => effect.key === key)?.answer ?? null;

  const effect = async (name, key, input, lose) => {
    requests.push({ name, key });
    await slow();
    let answer = honoursKeys ? happened(key) : null;
    if (answer === null) {
      answer = { receipt: `r-${effects.length + 1}`, of: name, input };
      effects.push({ name, key, answer });
    }
    await slow();
    return lose ? null : answer;
  };
  const pay = async (name) => {
    const call = (paid.get(name) ?? 0) + 1;
    paid.set(name, call);
    await slow();
    return { text: `thoughts on ${name}`, call };
  };

  const server = createServer(async (asked, response) => {
    const { pathname, searchParams } = new URL(asked.url, "http://localhost");
    const name = searchParams.get("name");
    let body = "";
    // A client that dies before its request is whole has asked for nothing.
    try {
      for await (const chunk of asked.setEncoding("utf8")) body += chunk;
    } catch {
      return;
    }
    const key = asked.headers["idempotency-key"] ?? searchParams.get("key");
    let answer;
    if (pathname === "/effect") {
      answer = await effect(name, key, JSON.parse(body), searchParams.has("lose"));
    } else if (pathname === "/paid") answer = await pay(name);
    else answer = { answer: happened(key) };
    response.statusCode = answer === null ? 503 : 200;
    response.end(JSON.stringify(answer));
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => sockets.delete(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${server.address().port}`;

  return {
    url,
    /** `{ name, key, answer }`, in order. */
    effects,
    /** Every request for an effect: `{ name, key }`. */
    requests,
    /** How often each paid call was made, by name. */
    paid,
    happened,
    /**
     * Waits until everything that a dead client had sent is done: connections are accepted in their
     * order, so when one of now is, theirs were, and each closes when its request is answered. Who
     * asks earlier whether an effect happened may be told no, and see it happen then.
     */
    async settle() {
      await ask(`${url}/happened?key=none`, { method: "GET" });
      while (sockets.size > 0) await sleep(1);
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/**
 * Asks the service; answers null where it says 503.
 *
 * @param sent called when the request has left this process
 */
export function ask(url, { method = "POST", key, input = null, sent = () => undefined } = {}) {
  return new Promise((resolve, reject) => {
    const headers = key === undefined ? {} : { "Idempotency-Key": key };
    const asking = request(url, { method, headers, agent: false }, async (response) => {
      try {
        let text = "";
        for await (const chunk of response.setEncoding("utf8")) text += chunk;
        resolve(JSON.parse(text));
      } catch (error) {
        reject(error);
      }
    });
    asking.on("error", reject);
    asking.end(method === "GET" ? undefined : JSON.stringify(input), sent);
  });
}
