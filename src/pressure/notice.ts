/** Something about memory that whoever runs the process should know. */
export interface PressureNotice {
  /**
   * `absent`: something cannot be watched. `pressure`, `cleared`: memory became short, and is not any more. `safe`: everything is in the
   * store. `unsafe`: something is not. `failed`: nothing is watched any more, or a callback threw.
   */
  readonly code: "absent" | "pressure" | "cleared" | "safe" | "unsafe" | "failed";
  /** One line. */
  readonly message: string;
}

/** Tells it as Node.js tells warnings: on standard error, unless the process listens or was started without them. */
export function warn({ code, message }: PressureNotice): void {
  process.emitWarning(message, {
    type: "AgstateWarning",
    code: `AGSTATE_PRESSURE_${code.toUpperCase()}`,
  });
}
