// Reads a file of the number of MiB that it is given, so that the page cache holds as much of it as it may.
import { closeSync, ftruncateSync, openSync, readSync, writeSync } from "node:fs";
import { join } from "node:path";

const MIB = 1 << 20;
const file = openSync(join(process.env.WORK, "much"), "w+");
ftruncateSync(file, Number(process.argv[2]) * MIB);
const piece = Buffer.alloc(MIB);
let bytes = 0;
for (let got = 1; got > 0; bytes += got) got = readSync(file, piece, 0, MIB, bytes);
closeSync(file);
writeSync(1, `read ${bytes / MIB} MiB\n`);
