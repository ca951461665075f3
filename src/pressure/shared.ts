import type { PressureLevel } from "./reasons.js";
import { PRESSURE_LEVELS } from "./trigger.js";

/** What the watching thread and the main one have in common, so that neither has to wait for the other's event loop. */
export class Shared {
  readonly buffer: SharedArrayBuffer;
  private readonly words: Int32Array;
  private readonly heap: Float64Array;

  constructor(buffer: SharedArrayBuffer = new SharedArrayBuffer(32)) {
    this.buffer = buffer;
    this.words = new Int32Array(buffer, 0, 4);
    this.heap = new Float64Array(buffer, 16, 2);
  }

  /** How short memory is, as the watching thread last said. */
  get level(): PressureLevel {
    return PRESSURE_LEVELS[Atomics.load(this.words, LEVEL)] as PressureLevel;
  }

  set level(level: PressureLevel) {
    Atomics.store(this.words, LEVEL, PRESSURE_LEVELS.indexOf(level));
  }

  get stopped(): boolean {
    return Atomics.load(this.words, STOP) === 1;
  }

  /** Ends the watching thread's sleep, and with it the thread. */
  stop(): void {
    Atomics.store(this.words, STOP, 1);
    Atomics.notify(this.words, STOP);
  }

  /** Sleeps until the time is over or `stop` is called; only for a thread that may block. */
  sleep(ms: number): void {
    Atomics.wait(this.words, STOP, 0, ms);
  }

  /** What the main thread said of its heap; null before it did. */
  get heapUse(): { readonly usedBytes: number; readonly limitBytes: number } | null {
    const [usedBytes, limitBytes] = this.heap as unknown as [number, number];
    return limitBytes > 0 ? { usedBytes, limitBytes } : null;
  }

  setHeap(usedBytes: number, limitBytes: number): void {
    this.heap[0] = usedBytes;
    this.heap[1] = limitBytes;
  }
}

const LEVEL = 0;
const STOP = 1;
