/**
 * Gathers items into pages: the first has `first`, each after it twice as many as the one before, and none more
 * than `most`. So whoever wants little waits for little, and whoever wants all makes few calls.
 */
export async function* inPages<T>(
  items: AsyncIterable<T> | Iterable<T>,
  first: number,
  most: number,
): AsyncGenerator<T[], void, undefined> {
  let size = Math.min(first, most);
  let page: T[] = [];
  for await (const item of items) {
    page.push(item);
    if (page.length < size) continue;
    yield page;
    page = [];
    size = Math.min(2 * size, most);
  }
  if (page.length > 0) yield page;
}
