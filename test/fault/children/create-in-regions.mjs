/**
 * Creates workflows by the router of regions, and says of each that it exists, or who was faster; with `stopAt`
 * it stands still for ever where it is about to write to that region's store.
 */
import { isAgstateError, openRegions } from "../../../dist/index.js";
import { args, say, whenAllAreReady } from "./lines.mjs";

const standing = (storage) => ({
  ...storage,
  write: () => {
    say("placed");
    return new Promise(() => setInterval(() => undefined, 1000));
  },
});
const regions = await openRegions(args.file, {
  wrap: (storage, region) => (region === args.stopAt ? standing(storage) : storage),
});
if (args.together) await whenAllAreReady();
for (let n = args.from; n < args.to; n++) {
  const storageRegion = args.regions[n % args.regions.length];
  try {
    await regions.createWorkflow(`w${n}`, { storageRegion, state: { n, storageRegion } });
    say(`created ${n} ${storageRegion}`);
  } catch (error) {
    if (!isAgstateError(error, "WORKFLOW_EXISTS")) throw error;
    say(`exists ${n} ${error.details.region}`);
  }
}
await regions.close();
