/** Makes what tells whether a tool's name matches a pattern, in which `*` stands for any characters, none included. */
export function toolMatcher(pattern: string): (name: string) => boolean {
  const [first = "", ...rest] = pattern.split("*");
  const last = rest.pop();
  if (last === undefined) return (name) => name === first;
  return (name) => {
    if (!name.startsWith(first)) return false;
    let at = first.length;
    // The leftmost place of each part leaves the most room for those after it.
    for (const part of rest) {
      const found = name.indexOf(part, at);
      if (found < 0) return false;
      at = found + part.length;
    }
    return name.length - last.length >= at && name.endsWith(last);
  };
}
