import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

/** A request as it came in. */
export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
}

/** An answer in full, or one of the ways not to give it. */
export type Answer =
  | {
      readonly status: number;
      readonly headers?: Readonly<Record<string, string | readonly string[]>>;
      readonly body?: string | Buffer;
      /** Node writes one where this does not say that there is to be none. */
      readonly date?: false;
    }
  | "silent"
  | "stalls"
  | "drips"
  | "resets"
  | "truncates";

export interface ResourceServer {
  readonly url: string;
  readonly port: number;
  readonly received: Asked[];
  /** Sets what is answered to a path with its query; everything else is answered with 404. */
  at(path: string, answer: Answer | ((asked: Asked) => Answer)): void;
}

/** An HTTP server on loopback that the running test owns, whose resources can be in any state. */
export async function startResourceServer(tls?: {
  readonly key: string;
  readonly cert: string;
}): Promise<ResourceServer> {
  const received: Asked[] = [];
  const answers = new Map<string, Answer | ((asked: Asked) => Answer)>();
  const timers = new Set<NodeJS.Timeout>();
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    const { method = "", url: path = "", headers } = request;
    const asked = { method, path, headers };
    received.push(asked);
    const answer = answers.get(path) ?? { status: 404 };
    give(typeof answer === "function" ? answer(asked) : answer, request, response, timers);
  };
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(async () => {
    for (const timer of timers) clearInterval(timer);
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });
  const { port } = server.address() as AddressInfo;
  const url = `${tls === undefined ? "http" : "https"}://127.0.0.1:${port}`;
  return { url, port, received, at: (path, answer) => void answers.set(path, answer) };
}

function give(
  answer: Answer,
  request: IncomingMessage,
  response: ServerResponse,
  timers: Set<NodeJS.Timeout>,
): void {
  const begin = (length: number) =>
    response.writeHead(200, {
      "content-type": "application/json",
      "content-length": length,
    });
  switch (answer) {
    case "silent":
      return;
    case "stalls":
      begin(100).write('{"id":');
      return;
    case "drips": {
      begin(1_000_000).write("{");
      const timer = setInterval(() => response.write(" "), 5);
      timers.add(timer);
      response.on("close", () => clearInterval(timer));
      return;
    }
    case "resets":
      request.socket.resetAndDestroy();
      return;
    case "truncates":
      begin(100).write('{"id":', () => request.socket.end());
      return;
    default: {
      if (answer.date === false) response.sendDate = false;
      for (const [name, value] of Object.entries(answer.headers ?? {})) {
        response.setHeader(name, value as string);
      }
      response.writeHead(answer.status).end(answer.body);
    }
  }
}

/** A JSON answer. */
export function json(
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): Exclude<Answer, string> {
  const type = { "content-type": "application/json;charset=UTF-8" };
  return { status: 200, headers: { ...type, ...headers }, body: JSON.stringify(value) };
}
