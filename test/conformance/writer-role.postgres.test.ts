import { describe, it } from "vitest";
import { DEFAULT_LIMITS } from "../../src/core/limits.js";
import { forward } from "../../src/storage/decorators/forward.js";
import type { Storage } from "../../src/storage/port.js";
import { openPostgresStorage } from "../../src/storage/postgres/open.js";
import { conformanceSuite, digest, randomHex } from "../../src/testing/index.js";
import { storeWithRoles } from "../support/roles.js";

const options = {
  graceMs: DEFAULT_LIMITS.graceMs,
  busyTimeoutMs: 5000,
  create: false,
  digest,
  randomHex,
  now: Date.now,
};

// All of the suite as a writer; only what removes is done by the maintainer.
conformanceSuite(
  {
    name: "postgres by roles of least privilege",
    small: true,
    async open() {
      const { as, drop } = await storeWithRoles();
      const opened: Storage[] = [];
      const openAs = async (url: string) => {
        const storage = await openPostgresStorage({ ...options, url });
        opened.push(storage);
        return storage;
      };
      const open = async () => {
        const maintainer = await openAs(as.maintainer);
        const writer = await openAs(as.writer);
        return {
          ...forward(writer),
          condemn: maintainer.condemn.bind(maintainer),
          sweep: maintainer.sweep.bind(maintainer),
          compact: maintainer.compact.bind(maintainer),
          redact: maintainer.redact.bind(maintainer),
          redeclare: maintainer.redeclare.bind(maintainer),
          close: async () => {
            await writer.close();
            await maintainer.close();
          },
        };
      };
      return {
        storage: await open(),
        reopen: open,
        beside: open,
        async destroy() {
          for (const storage of opened) await storage.close();
          await drop();
        },
      };
    },
  },
  { describe, it: it.concurrent },
);
