import { styleText } from "node:util";

type Style = Parameters<typeof styleText>[0];

/** Colours a text for a role; the identity when colour is off. */
export interface Paint {
  id(text: string): string;
  ref(text: string): string;
  canonical(text: string): string;
  tag(text: string): string;
  added(text: string): string;
  removed(text: string): string;
  path(text: string): string;
  bad(text: string): string;
  good(text: string): string;
  dim(text: string): string;
  bold(text: string): string;
  /** The lines of a graph, a colour a lane. */
  lane(lane: number, text: string): string;
}

const LANES: readonly Style[] = ["red", "green", "yellow", "blue", "magenta", "cyan"];

export function createPaint(colour: boolean): Paint {
  // Whether the stream takes colour was decided before; styleText must not look again.
  const as = (style: Style) => (text: string) => (colour ? styleText(style, text) : text);
  return {
    id: as("yellow"),
    ref: as("green"),
    canonical: as(["bold", "cyan"]),
    tag: as("yellow"),
    added: as("green"),
    removed: as("red"),
    path: as("bold"),
    bad: as(["bold", "red"]),
    good: as("green"),
    dim: as("dim"),
    bold: as("bold"),
    lane: (lane, text) => (colour ? styleText(LANES[lane % LANES.length] as Style, text) : text),
  };
}
