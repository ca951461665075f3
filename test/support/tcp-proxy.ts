import { connect, createServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";

/** A way to a server that can be cut, for as long as the test goes on. */
export interface TcpProxy {
  readonly port: number;
  /** Lets the next request through, and loses the answer with the connection. */
  loseNextAnswer(): void;
  /** Breaks all connections. */
  cut(): void;
  /** Lets nothing through any more on the connections that there are, in the given direction or both, and breaks none. */
  freeze(direction?: "answers"): void;
  /** Lets new connections come out at another port, as a name does that was given to another server. */
  leadTo(port: number): void;
  /** Takes no new connections. */
  refuse(): void;
  /** How many answers were lost. */
  readonly lost: number;
}

/**
 * Starts a proxy on loopback.
 *
 * @param hidden the name of a setting that the server reports and clients are not told of, as through some poolers
 */
export async function startProxy(host: string, port: number, hidden?: string): Promise<TcpProxy> {
  let target = port;
  const sockets = new Set<Socket>();
  const upstreams = new Set<Socket>();
  const frozen = new Set<Socket>();
  let losing = false;
  let lost = 0;
  const server = createServer((client) => {
    const upstream = connect(target, host);
    upstreams.add(upstream);
    /** Whether what the server says on this connection is lost from now on. */
    let armed = false;
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        sockets.delete(socket);
        (socket === client ? upstream : client).destroy();
      });
    }
    client.on("data", (data) => {
      if (frozen.has(client)) return;
      // Messages that run a statement begin with P, for Parse, or, where it is known already, B, for Bind.
      if (losing && (data[0] === 0x50 || data[0] === 0x42)) {
        losing = false;
        armed = true;
      }
      upstream.write(data);
    });
    upstream.on("data", (data) => {
      if (frozen.has(upstream)) return;
      if (!armed) {
        const at = hidden === undefined ? -1 : data.indexOf(`${hidden}\0`);
        if (at >= 0) data.write("x", at);
        client.write(data);
        return;
      }
      // The server has answered, so it has committed.
      lost++;
      client.destroy();
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    loseNextAnswer: () => {
      losing = true;
    },
    cut: () => {
      for (const socket of sockets) socket.destroy();
    },
    freeze: (direction) => {
      for (const socket of direction === "answers" ? upstreams : sockets) frozen.add(socket);
    },
    leadTo: (other) => {
      target = other;
    },
    refuse: () => {
      server.close();
    },
    get lost() {
      return lost;
    },
  };
}
