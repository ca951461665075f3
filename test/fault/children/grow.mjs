// Takes memory in small pieces, tells of every 8 MiB, and ends in good order at the number of MiB that it
// is given.
import { writeSync } from "node:fs";

const PIECE_BYTES = 1 << 20;
const held = [];
for (let mib = 1; mib <= Number(process.argv[2]); mib++) {
  // Written to: the kernel gives memory when it is touched, not when it is asked for.
  held.push(Buffer.alloc(PIECE_BYTES, mib));
  if (mib % 8 === 0) writeSync(1, `holds ${mib} MiB\n`);
}
writeSync(1, `done with ${held.length} MiB\n`);
