import { LRUCache } from "lru-cache";

/**
 * The keys under which workflows' rows stand: the first 16 bytes of the SHA-256
 * of the id, as a uuid. So no call has to look a number up, and no sequence has to
 * be shared by servers.
 */
export class WorkflowKeys {
  private readonly known = new LRUCache<string, string>({ max: 10_000 });

  constructor(private readonly digest: (text: string) => string) {}

  of(workflow: string): string {
    let key = this.known.get(workflow);
    if (key === undefined) {
      const hex = this.digest(workflow).slice(0, 32);
      key = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
      this.known.set(workflow, key);
    }
    return key;
  }
}
