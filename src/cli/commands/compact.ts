import { escapeLine } from "../render/escape.js";
import { formatBytes } from "../render/sizes.js";
import type { Session } from "../session.js";

/** `agstate compact`: gives back the space of what is gone, of the store or of the stores of all regions. */
export async function run(session: Session): Promise<undefined> {
  const { out } = session;
  for await (const storage of session.storages()) {
    const { location } = await storage.describe();
    const { bytesBefore, bytesAfter } = await storage.compact();
    if (out.json) await out.value({ store: location, bytesBefore, bytesAfter });
    else
      await out.line(
        `${escapeLine(location)}: ${formatBytes(bytesBefore)} before, ${formatBytes(bytesAfter)} after`,
      );
  }
}
