/**
 * `agstate/testing`: what every storage backend must do, for those who write one.
 *
 * Needs no test runner of its own: hand it `describe` and `it`, or call `runConformance`.
 */
export type { BackendOptions, Storage } from "../storage/port.js";
export type { ConformanceCase, ConformanceContext, OpenedStorage } from "./case.js";
export { digest, randomHex } from "./fixtures.js";
export {
  type ConformanceFailure,
  type ConformanceTarget,
  conformanceCases,
  conformanceSuite,
  runCase,
  runConformance,
  type TestApi,
} from "./suite.js";
