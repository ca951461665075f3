import { textSource } from "./text.mjs";

/** What a tool is called with and gives back: about 300 bytes of JSON each, like a booking's. */
const TEXT_BYTES = { input: 140, output: 120 };

/**
 * Makes a function that gives the calls of a workflow, before the clock starts: for each step its
 * name, its input and the output that its tool will give.
 *
 * @param steps how many steps a workflow has
 */
export function callSource(seed, steps) {
  const text = textSource(seed);
  let number = 0;
  return () => Array.from({ length: steps }, (_, step) => call(text, ++number, step));
}

function call(text, number, step) {
  const order = `order-${String(number).padStart(8, "0")}`;
  return {
    name: "book",
    input: {
      order,
      step,
      customer: { id: `customer-${number % 997}`, language: "en", tier: "standard" },
      items: [{ sku: `sku-${number % 89}`, count: 1 + (number % 3), price: 1250 }],
      note: text(TEXT_BYTES.input),
    },
    output: {
      order,
      status: "confirmed",
      reference: `ref-${number}`,
      charged: { amount: 1250 * (1 + (number % 3)), currency: "EUR" },
      seats: [`${1 + (number % 40)}A`, `${1 + (number % 40)}B`],
      text: text(TEXT_BYTES.output),
      cancellable: true,
      expires: 1_900_000_000 + number,
    },
  };
}
