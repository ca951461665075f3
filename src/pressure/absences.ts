import type { Absence } from "./types.js";

/** What was found to be missing; each thing is told once, however often it is missed. */
export class Absences {
  private readonly told = new Set<string>();
  private untold: Absence[] = [];

  add(what: string, message: string): void {
    if (this.told.has(what)) return;
    this.told.add(what);
    this.untold.push({ what, message });
  }

  /** What was added since this was last asked. */
  take(): Absence[] {
    const taken = this.untold;
    this.untold = [];
    return taken;
  }
}
