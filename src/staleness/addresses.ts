import ipaddr from "ipaddr.js";

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** NAT64 of RFC 6052: the last 32 bits are the IPv4 address that is meant. */
const NAT64 = ipaddr.IPv6.parse("64:ff9b::");
/** All that is given out as public IPv6; what else there is counts as not public, whatever it may become. */
const GLOBAL_UNICAST = ipaddr.IPv6.parse("2000::");

/** An IP address as the one that a connection to it ends at; null when the text is none. */
export function parseAddress(text: string): Address | null {
  const address = parse(text);
  return address === null ? null : meant(address);
}

function parse(text: string): Address | null {
  if (!text.includes(":"))
    return ipaddr.IPv4.isValidFourPartDecimal(text) ? ipaddr.IPv4.parse(text) : null;
  // ipaddr.js takes ::1.2.3.4 for ::ffff:1.2.3.4, which is another address; a URL has no dots in it.
  const url = `http://[${text.replace(/%.*$/, "")}]`;
  return URL.canParse(url) ? ipaddr.IPv6.parse(new URL(url).hostname.slice(1, -1)) : null;
}

/** An IPv6 address that stands for one of IPv4 is that one. */
function meant(address: Address): Address {
  if (address instanceof ipaddr.IPv4) return address;
  if (address.isIPv4MappedAddress()) return address.toIPv4Address();
  if (address.match(NAT64, 96)) return new ipaddr.IPv4(address.toByteArray().slice(12));
  return address;
}

/**
 * Why nothing may be asked of an address that nobody allowed, as a word such as `loopback`; null when it is a public one.
 *
 * Only what is plain unicast is public. Tunnels through IPv4 (6to4, Teredo) are not, since they reach whatever address they
 * have inside.
 */
export function notPublic(address: Address): string | null {
  const range = address.range();
  if (range !== "unicast") return range;
  const usual = address instanceof ipaddr.IPv4 || address.match(GLOBAL_UNICAST, 3);
  return usual ? null : "reserved";
}

/** A range of addresses. */
export type AddressRange = readonly [first: Address, bits: number];

/** A range such as `10.0.0.0/8`, or one address; null when the text is none. */
export function parseRange(text: string): AddressRange | null {
  const [, start = text, length] = /^(.*)\/(\d{1,3})$/.exec(text) ?? [];
  const first = parse(start);
  if (first === null) return null;
  const all = first.kind() === "ipv4" ? 32 : 128;
  const bits = length === undefined ? all : Number(length);
  if (bits > all) return null;
  const inner = meant(first);
  if (inner.kind() === first.kind()) return [first, bits];
  // A range of mapped addresses is one of IPv4; a wider one is no range of either.
  return bits >= 96 ? [inner, bits - 96] : null;
}

export function isWithin(address: Address, [first, bits]: AddressRange): boolean {
  return address.kind() === first.kind() && address.match(first, bits);
}
