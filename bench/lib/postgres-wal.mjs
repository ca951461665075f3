/**
 * A contestant of `interleave` as it is, and what its rounds add to the server's write-ahead log.
 *
 * @returns the contestant, and `walPerStep`, in bytes, of what was done until it is called
 */
export function walCounted(server, contestant) {
  const total = { bytes: 0, steps: 0 };
  return {
    walPerStep: () => total.bytes / total.steps,
    contestant: {
      ...contestant,
      async round() {
        const before = await walPosition(server);
        const answer = await contestant.round();
        total.bytes += (await walPosition(server)) - before;
        total.steps += contestant.steps;
        return answer;
      },
    },
  };
}

/** How many bytes of log there were since the server was made. */
export async function walPosition({ pool }) {
  const { rows } = await pool.query(
    "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 AS bytes",
  );
  return rows[0].bytes;
}
