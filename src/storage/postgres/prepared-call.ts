import type { Socket } from "node:net";
import type { ClientBase, Submittable } from "pg";
import { bindMessages, type Parameter } from "./parameters.js";

/** A statement with a name under which a session of the server knows it, once it has parsed it. */
export interface Prepared {
  readonly name: string;
  readonly text: string;
  /** What it does, in a word. */
  readonly operation: string;
}

/** What node-pg's connection has, and its types do not tell. */
interface Wire {
  readonly stream: Socket;
  /** The texts of statements that this session knows, by name; kept by node-pg's client. */
  readonly parsedStatements: Readonly<Record<string, string | undefined>>;
  parse(statement: { readonly name: string; readonly text: string }): void;
}

/**
 * Runs a statement that answers one value, or NULL.
 *
 * Not node-pg's own query, which has the server describe the answer each time and copies the
 * values several times.
 *
 * @param named false for a server whose sessions forget: then it is parsed each time
 */
export function callPrepared(
  client: ClientBase,
  statement: Prepared,
  parameters: readonly Parameter[],
  named: boolean,
): Promise<string | null> {
  return new Promise((resolve, reject) => {
    const name = named ? statement.name : "";
    client.query(new PreparedCall(name, statement.text, parameters, resolve, reject));
  });
}

/** What node-pg's client calls while a statement is under way. */
class PreparedCall implements Submittable {
  private value: string | null = null;

  constructor(
    readonly name: string,
    readonly text: string,
    private readonly parameters: readonly Parameter[],
    private readonly resolve: (value: string | null) => void,
    private readonly reject: (error: unknown) => void,
  ) {}

  submit(connection: unknown): void {
    const wire = connection as Wire;
    const { stream, parsedStatements } = wire;
    // One that was lost tells by an event.
    if (!stream.writable) return;
    const known = this.name !== "" && parsedStatements[this.name] === this.text;
    stream.cork();
    if (!known) wire.parse(this);
    stream.write(bindMessages(this.name, this.parameters));
    stream.uncork();
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    this.value = fields[0] ?? null;
  }

  handleReadyForQuery(): void {
    this.resolve(this.value);
  }

  handleError(error: Error): void {
    this.reject(error);
  }

  handleRowDescription(): void {}
  handleCommandComplete(): void {}
  handleEmptyQuery(): void {}
  handlePortalSuspended(): void {}
  handleCopyInResponse(): void {}
  handleCopyData(): void {}
}
