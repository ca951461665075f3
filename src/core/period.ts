/** An ISO 8601 duration with at least one part. */
const PERIOD =
  /^P(?=\d|T\d)(?:\d+Y)?(?:\d+M)?(?:\d+W)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+S)?)?$/;

/** Whether it is an ISO 8601 period, such as `P90D`. */
export function isPeriod(given: unknown): given is string {
  return typeof given === "string" && PERIOD.test(given);
}
