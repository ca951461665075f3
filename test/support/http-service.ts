import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

/** A request as it came in. */
export interface Received {
  readonly method: string;
  readonly path: string;
  readonly key: string | undefined;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** An HTTP server on loopback that the running test owns, and what has come to it. */
export async function startHttpService(
  answer: (request: Received, response: ServerResponse) => void,
): Promise<{ readonly url: string; readonly received: Received[] }> {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk;
    const { headers, method = "", url: path = "" } = request;
    const key = headers["idempotency-key"] as string | undefined;
    const one = { method, path, key, headers, body };
    received.push(one);
    answer(one, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received };
}
