/** A server on loopback that answers each request after a while, in a process of its own, so that its work is nobody's else. */
import { createServer } from "node:http";

const latencyMs = Number(process.argv[2]);
const counts = { underWay: 0, most: 0 };
const server = createServer((_, response) => {
  counts.most = Math.max(counts.most, ++counts.underWay);
  setTimeout(() => {
    counts.underWay--;
    response.setHeader("etag", '"1"').end();
  }, latencyMs);
});
server.listen(0, "127.0.0.1", () => process.send({ port: server.address().port }));
// Whoever asks how many there were at most is done.
process.on("message", () => process.send({ most: counts.most }, () => process.exit()));
process.on("disconnect", () => process.exit());
