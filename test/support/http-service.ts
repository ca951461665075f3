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
  /** As they came over the wire: first line and headers, and the body. */
  readonly bytes: readonly [head: Buffer, body: Buffer];
}

/** An HTTP server on loopback that the running test owns, and what has come to it. */
export async function startHttpService(
  answer: (request: Received, response: ServerResponse) => void,
): Promise<{ readonly url: string; readonly received: Received[] }> {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const raw = Buffer.concat(parts);
    const { headers, rawHeaders, method = "", url: path = "" } = request;
    const key = headers["idempotency-key"] as string | undefined;
    const head = Buffer.from([method, path, ...rawHeaders].join("\n"));
    const bytes = [head, raw] as const;
    const one = { method, path, key, headers, body: raw.toString("utf8"), bytes };
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
