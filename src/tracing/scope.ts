/** The instrumentation scope that all spans and measurements are of. */
export const SCOPE = "agstate";
