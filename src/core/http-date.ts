const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

const DAY = DAYS.map((day) => day.slice(0, 3)).join("|");
const MONTH = MONTHS.join("|");
const TIME = "(?<hour>\\d{2}):(?<minute>\\d{2}):(?<second>\\d{2})";

/** The three forms of RFC 9110, section 5.6.7: the one that is sent, and two that old servers send. */
const FORMS = [
  `(?<day>${DAY}), (?<date>\\d{2}) (?<month>${MONTH}) (?<year>\\d{4}) ${TIME} GMT`,
  `(?<day>${DAYS.join("|")}), (?<date>\\d{2})-(?<month>${MONTH})-(?<year>\\d{2}) ${TIME} GMT`,
  `(?<day>${DAY}) (?<month>${MONTH}) (?<date>\\d{2}| \\d) ${TIME} (?<year>\\d{4})`,
].map((form) => new RegExp(`^${form}$`));

const FIFTY_YEARS_MS = 50 * 365.2425 * 24 * 60 * 60 * 1000;

/**
 * Parses a date of an HTTP header, in any of the three forms that RFC 9110, section 5.6.7, knows.
 *
 * Everything else is no date, also what JavaScript would make one of: a day that the month does not have, a weekday that is
 * not that day's, another time zone.
 *
 * @param now milliseconds since the Unix epoch: a year of two digits is the last such year that is at most 50 years ahead
 * @returns milliseconds since the Unix epoch; null when it is no such date
 */
export function parseHttpDate(text: string, now: number): number | null {
  const fields = FORMS.map((form) => form.exec(text)?.groups).find((found) => found !== undefined);
  if (fields === undefined) return null;
  const { day = "", month = "", year = "" } = fields;
  const [date, hour, minute, second] = [fields.date, fields.hour, fields.minute, fields.second].map(
    Number,
  ) as [number, number, number, number];
  // A leap second has the number 60.
  if (hour > 23 || minute > 59 || second > 60) return null;
  const at = (fullYear: number): Date => {
    const midnight = new Date(0);
    midnight.setUTCFullYear(fullYear, MONTHS.indexOf(month), date);
    return midnight;
  };
  const midnight = at(year.length === 4 ? Number(year) : fullYearOf(Number(year), now, at));
  if (midnight.getUTCDate() !== date) return null;
  if (!DAYS[midnight.getUTCDay()]?.startsWith(day.slice(0, 3))) return null;
  return midnight.getTime() + ((hour * 60 + minute) * 60 + second) * 1000;
}

function fullYearOf(ending: number, now: number, at: (year: number) => Date): number {
  const century = Math.floor(new Date(now).getUTCFullYear() / 100) * 100;
  const years = [century + 100, century, century - 100].map((first) => first + ending);
  return years.find((year) => at(year).getTime() - now <= FIFTY_YEARS_MS) ?? century + ending;
}

/** Writes a time as HTTP's headers have it; what is less than a second is cut off. */
export function formatHttpDate(at: number): string {
  return new Date(at).toUTCString();
}
