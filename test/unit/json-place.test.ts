import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { placeOf } from "../../src/objects/json-place.js";
import { jsonValues } from "../support/json.js";

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

describe("the place of a value in JSON text", () => {
  it("is where a writer put it, whatever space is between", () => {
    const space = fc.stringMatching(/^[ \n\t\r]{0,3}$/);
    fc.assert(
      fc.property(
        jsonValues({ maxDepth: 4 }),
        fc.array(space, { minLength: 1, maxLength: 7 }),
        (value, spaces) => {
          let text = "";
          let used = 0;
          const put = (part: string) => {
            text += `${spaces[used++ % spaces.length]}${part}`;
          };
          const places: [string[], number][] = [];
          const write = (value: Json, path: string[]) => {
            put("");
            places.push([path, text.length]);
            if (typeof value !== "object" || value === null) {
              text += JSON.stringify(value);
            } else if (Array.isArray(value)) {
              text += "[";
              for (const [i, element] of value.entries()) {
                if (i > 0) put(",");
                write(element, [...path, String(i)]);
              }
              put("]");
            } else {
              text += "{";
              for (const [i, key] of Object.keys(value).entries()) {
                if (i > 0) put(",");
                put(JSON.stringify(key));
                put(":");
                write(value[key] as Json, [...path, key]);
              }
              put("}");
            }
          };
          write(value as Json, []);
          put("");
          expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
          for (const [path, position] of places) {
            const lines = text.slice(0, position).split("\n");
            const column = (lines.at(-1) as string).length + 1;
            expect(placeOf(text, path)).toEqual({ line: lines.length, column });
          }
        },
      ),
      { numRuns: 500 },
    );
  });

  it("is that of the nearest above it where there is none", () => {
    const text = '{"a": [1, {"b": 2}],\n "c": {}, "d": []}';
    const at = (...path: string[]) => placeOf(text, path);
    expect(at("a", "1", "x")).toEqual({ line: 1, column: 11 });
    expect(at("a", "2")).toEqual({ line: 1, column: 7 });
    expect(at("a", "x")).toEqual({ line: 1, column: 7 });
    expect(at("c", "x", "y")).toEqual({ line: 2, column: 7 });
    expect(at("d", "0")).toEqual({ line: 2, column: 16 });
    expect(at("a", "0", "x")).toEqual({ line: 1, column: 8 });
    expect(at("none")).toEqual({ line: 1, column: 1 });
  });
});
