import { connect, type Socket } from "node:net";
import type { ClientBase, QueryResult, QueryResultRow } from "pg";
import { UnansweredError } from "./errors.js";

/** How long after its cancellation a statement may still answer, in milliseconds. */
const CANCEL_GRACE_MS = 5000;

/** What marks a request to cancel, in the protocol between client and server. */
const CANCEL_REQUEST = 80877102;

/** What node-pg's client knows, and its types do not tell. */
interface ClientInside {
  readonly host: string;
  readonly port: number;
  readonly processID: number | null;
  readonly secretKey: number | null;
  readonly connection: { readonly stream: Socket };
}

const inside = (client: ClientBase) => client as unknown as ClientInside;

/** A statement, or, without values, several. */
export interface Statement {
  readonly text: string;
  readonly values?: readonly unknown[] | undefined;
  /** Under which the session knows it once it has parsed it. */
  readonly name?: string | undefined;
}

/**
 * Runs a statement that has to answer within a time, as of {@link within}.
 *
 * Not by node-pg's `query_timeout`, which only stops to wait: the statement goes on, with its locks,
 * and the client that is still busy with it may be given to the next caller.
 */
export async function runWithin<Row extends QueryResultRow>(
  client: ClientBase,
  { text, values, name }: Statement,
  limitMs: number,
): Promise<Row[]> {
  const answer: Promise<QueryResult<Row> | QueryResult<Row>[]> = client.query<Row>(
    values === undefined ? { text } : { text, values: [...values], ...(name && { name }) },
  );
  const result = await within(client, answer, limitMs);
  return Array.isArray(result) ? [] : result.rows;
}

/**
 * Waits for the answer of what was sent by a client: after a time the server is asked to cancel it.
 *
 * @throws UnansweredError where no answer came even then; the client is of no use any more
 */
export function within<T>(client: ClientBase, answer: Promise<T>, limitMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    let timer = setTimeout(() => {
      cancel(client);
      timer = setTimeout(
        () => reject(new UnansweredError(limitMs + CANCEL_GRACE_MS)),
        CANCEL_GRACE_MS,
      );
    }, limitMs);
    answer.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}

/**
 * Asks the server to cancel what a client's connection is doing, by a connection made for that; a pooler
 * hands it on. Like libpq's `PQcancel` it is sent in plain. If it fails, so be it.
 */
function cancel(client: ClientBase): void {
  const { host, port, processID, secretKey } = inside(client);
  if (processID === null || secretKey === null) return;
  const request = Buffer.alloc(16);
  request.writeInt32BE(16, 0);
  request.writeInt32BE(CANCEL_REQUEST, 4);
  request.writeInt32BE(processID, 8);
  request.writeInt32BE(secretKey, 12);
  const socket = host.startsWith("/") ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
  socket.on("error", () => undefined);
  socket.setTimeout(CANCEL_GRACE_MS, () => socket.destroy());
  socket.unref();
  // The other side closes it: pgbouncer 1.18 crashes where the client is the first (its issue 801).
  socket.resume();
  socket.write(request);
}

/** The server's process as the client was told of it; a pooler tells one of its own making. */
export function toldProcess(client: ClientBase): number | null {
  return inside(client).processID;
}

/** Breaks a client's connection at once. */
export function cut(client: ClientBase): void {
  inside(client).connection.stream.destroy();
}
