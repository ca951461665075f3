/**
 * The outside world of the demo: a service that books things and answers paid questions, on loopback.
 * It honours `Idempotency-Key`, and counts by it what was asked and what was done.
 */
import { once } from "node:events";
import { createServer } from "node:http";

/**
 * @param onBooked called when a booking is made and before it is answered; who makes it wait holds the answer back
 */
export async function startService(onBooked = async () => {}) {
  /** By key: what was booked, how often it was asked for and how often done. */
  const bookings = new Map();
  /** How often each question was asked. */
  const paid = new Map();

  async function book(key, what) {
    const booking = bookings.get(key) ?? { what, requests: 0, effects: 0, answer: null };
    bookings.set(key, booking);
    booking.requests++;
    if (booking.answer !== null) return booking.answer;
    booking.effects++;
    booking.answer = { booked: what, number: bookings.size };
    await onBooked(booking);
    return booking.answer;
  }

  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk;
    const asked = JSON.parse(body);
    let answer;
    if (request.url === "/bookings") {
      answer = await book(request.headers["idempotency-key"], asked.what);
    } else {
      paid.set(asked.question, (paid.get(asked.question) ?? 0) + 1);
      answer = { answer: CHOICES[asked.question] };
    }
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify(answer));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    bookings,
    paid,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** What a model might say. */
const CHOICES = {
  "which room": "the one by the river",
  "which cake": "hazelnut, for twelve",
  "which train": "the 16:04",
};
