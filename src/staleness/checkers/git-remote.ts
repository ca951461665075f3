import type { CredentialScope } from "../credentials.js";
import type { Egress, EgressAnswer } from "../egress.js";
import type { CheckContext, Observation } from "../types.js";
import { failed, settledBy, unknown } from "./answers.js";
import { parseAdvertisement } from "./git-advertisement.js";

/** Largest list of refs that is read, in bytes: that of a repository with some hundred thousand. */
const ADVERTISEMENT_MAX_BYTES = 32 * 1024 * 1024;

const MEDIA_TYPE = /^application\/x-git-upload-pack-advertisement\s*(?:;|$)/i;

export interface RemoteGit {
  readonly egress: Egress;
  /** Checked ones (`checkCredentials`). */
  readonly credentials?: readonly CredentialScope[];
}

/**
 * Finds what a ref of a repository elsewhere is at, by Git's smart HTTP protocol.
 *
 * It is asked through the one guarded client, and never by `git`, which has its own ways to reach an address and to run what a URL names.
 */
export async function observeRemoteRef(
  { egress, credentials = [] }: RemoteGit,
  repository: string,
  ref: string,
  context: CheckContext,
): Promise<Observation> {
  const url = listOfRefs(repository);
  if (url === null) return unknown("refused: the URL of its repository has a query, or is none");
  try {
    const answer = await egress.request({
      url,
      headers: { accept: "*/*" },
      credentials,
      signal: context.signal,
      maxBytes: ADVERTISEMENT_MAX_BYTES,
    });
    const settled = settledBy(answer.status, answer.headers, context.now()) ?? unreadable(answer);
    if (settled !== null) {
      answer.discard();
      return settled;
    }
    const refs = parseAdvertisement(await answer.body());
    if (refs === null) return unknown("answered with what is no whole list of Git's refs");
    const id = refs.get(ref);
    if (id === undefined) return { kind: "gone", why: `there is no ${ref}` };
    return { kind: "version", version: id, shown: `${ref} at ${id.slice(0, 12)}` };
  } catch (error) {
    return failed(error, context.signal);
  }
}

function listOfRefs(repository: string): string | null {
  const url = URL.canParse(repository) ? new URL(repository) : null;
  if (url === null || url.search !== "") return null;
  url.pathname = `${url.pathname.replace(/\/+$/, "")}/info/refs`;
  url.search = "service=git-upload-pack";
  return url.href;
}

/** Why an answer is no server's that speaks Git's smart protocol; null when it is. */
function unreadable({ status, headers }: EgressAnswer): Observation | null {
  if (status !== 200) return unknown(`answered with ${status}, without content`);
  return MEDIA_TYPE.test(headers.get("content-type") ?? "")
    ? null
    : unknown("answered with something else than Git's smart protocol");
}
