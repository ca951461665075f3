/** Where the numbered SQL files are, from `src/` and from `dist/` alike. */
export const MIGRATIONS = new URL("../../../migrations/postgres/", import.meta.url);
