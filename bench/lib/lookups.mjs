/** The step of an agent that looks something up: a memoized read with an input of usual size. */
export function lookUp(i) {
  return {
    name: "search",
    action: "read",
    memoize: true,
    input: { query: `rooms in the old town, page ${i}`, filters: { beds: 2, maxPrice: 120 } },
  };
}

/** What it finds: about 300 bytes. */
export function found(i) {
  return {
    page: i,
    hits: Array.from({ length: 4 }, (_, n) => ({
      id: `room-${i}-${n}`,
      price: 60 + ((i * 7 + n * 13) % 60),
      name: `Room ${n} of page ${i}`,
    })),
  };
}
