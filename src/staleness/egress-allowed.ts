import { AgstateError } from "../core/errors.js";
import { quoteForMessage } from "../core/names.js";
import { type AddressRange, isWithin, notPublic, parseAddress, parseRange } from "./addresses.js";

/** One entry of an allow-list: a name or a range of addresses, at one port or at all. */
interface Entry {
  readonly host: string | null;
  readonly range: AddressRange | null;
  readonly port: number | null;
}

/** Where something is asked for. */
export interface Target {
  /** As `URL` has it, without the brackets of IPv6. */
  readonly host: string;
  readonly port: number;
}

/** What may be asked besides public addresses. */
export interface AllowList {
  /** Whether the entries name the host itself, by name or by its literal address. */
  names(target: Target): boolean;
  /** Why nothing may be asked of an address that the target's name has; null when it may. */
  refusal(target: Target, address: string): string | null;
}

/**
 * Reads an allow-list: hosts (`wiki.internal`), hosts with a port (`localhost:8080`, `[::1]:8080`), addresses, and ranges of them
 * (`10.0.0.0/8`).
 *
 * @throws AgstateError `INVALID_ARGUMENT` for an entry that is none of these
 */
export function allowList(given: readonly string[] = []): AllowList {
  const entries = given.map(readEntry);
  const allowed = (target: Target, address: string | null): boolean => {
    const parsed = address === null ? null : parseAddress(address);
    return entries.some(
      ({ host, range, port }) =>
        (port === null || port === target.port) &&
        (range === null ? host === target.host : parsed !== null && isWithin(parsed, range)),
    );
  };
  return {
    names: (target) => allowed(target, target.host),
    refusal: (target, address) => {
      const parsed = parseAddress(address);
      if (parsed === null) return "its address is none of IP";
      const range = notPublic(parsed);
      if (range === null || allowed(target, address)) return null;
      return `its address is not public (${range}); the allow-list can name it`;
    },
  };
}

function readEntry(entry: unknown): Entry {
  if (typeof entry === "string") {
    const range = parseRange(entry);
    if (range !== null) return { host: null, range, port: null };
    const found = /^(?<host>\[[0-9a-fA-F:.]+\]|[^\s/:@?#[\]\\]+)(?::(?<port>\d{1,5}))?$/.exec(
      entry,
    );
    const { host = "", port } = found?.groups ?? {};
    // As URLs have it: in small letters, other scripts in ASCII.
    const url = `http://${host}`;
    const number = port === undefined ? null : Number(port);
    if (found && URL.canParse(url) && (number === null || (number >= 1 && number <= 65_535))) {
      const name = bareHost(new URL(url));
      const literal = parseRange(name);
      return { host: literal === null ? name : null, range: literal, port: number };
    }
  }
  const shown = typeof entry === "string" ? quoteForMessage(entry) : typeof entry;
  throw new AgstateError(
    "INVALID_ARGUMENT",
    `the allow-list has ${shown}, which is no host; give a host, a host and its port such as localhost:8080, or a range of addresses such as 10.0.0.0/8`,
    { entry: shown },
  );
}

/** A URL's host, without the brackets of IPv6 and without the dot that ends a full name. */
export function bareHost({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
}

export function targetOf(url: URL): Target {
  const usual = url.protocol === "https:" ? 443 : 80;
  return { host: bareHost(url), port: url.port === "" ? usual : Number(url.port) };
}
