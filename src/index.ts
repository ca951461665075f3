/**
 * agstate: version control for the state of AI agents.
 *
 * @module
 */
export { AgstateError, ERROR_CODES, type ErrorCode, isAgstateError } from "./core/errors.js";
export type { Finding } from "./core/finding.js";
export type { JsonValue } from "./core/json.js";
export { DEFAULT_LIMITS, type Limits } from "./core/limits.js";
export type { RetentionPolicy } from "./core/period.js";
export type { StepCall, StepClass, StepGrant, StepHooks, StepOutcome } from "./core/step-hooks.js";
export type { Environment } from "./core/variables.js";
export { isWithheld, Withheld, type WithheldReason } from "./core/withheld.js";
export { readGovernanceFile } from "./governance/file.js";
export {
  checkGovernance,
  type GovernancePolicy,
  type GovernanceRule,
} from "./governance/policy.js";
export { environmentKeys, type KeyEnvironment } from "./keys/environment-keys.js";
export { fileKeys, newKeyFile } from "./keys/file-keys.js";
export type { KeyContext, KeyProvider, WrappedKey } from "./keys/provider.js";
export { keysFrom } from "./keys/source.js";
export type { ConflictKind } from "./merge/contest.js";
export type { Change } from "./merge/diff.js";
export type { Policies, Strategy } from "./merge/policy.js";
export type {
  CustomResolver,
  CustomResolvers,
  Resolution,
  ThreeValues,
} from "./merge/resolvers.js";
export type { StepAction, StepStatus } from "./objects/commit.js";
export type { StateOperation } from "./objects/draft/operations.js";
export type { CheckpointReport } from "./pressure/emergency.js";
export type { Checkpointed, EmergencyReason } from "./pressure/guards.js";
export type { PressureNotice } from "./pressure/notice.js";
export type { PressureEvent, WatchPressureOptions } from "./pressure/options.js";
export type { PressureLevel, PressureReason } from "./pressure/reasons.js";
export type { PressureThresholds } from "./pressure/thresholds.js";
export type {
  MemoryEvents,
  MemoryLevel,
  MemorySource,
  PressureSample,
  Stalls,
  StallTimes,
  Throttling,
} from "./pressure/types.js";
export { type PressureWatch, watchPressure } from "./pressure/watch.js";
export type { RegionConfig, RegionDefaults, RegionsConfig } from "./residency/config.js";
export type { Placement } from "./residency/placement.js";
export {
  type OpenRegionsOptions,
  openRegions,
  type RegionStatus,
  type Regions,
  type StoreStatus,
} from "./residency/router/regions.js";
export type { BoundPath, FoundOut, ReviewStatus, ReviewSubject } from "./reviews/record.js";
export type { CheckBounds } from "./staleness/check.js";
export { checkBounds, createCheckers, readCheckersFile } from "./staleness/config.js";
export type { CheckerConfig } from "./staleness/config-check.js";
export type { CredentialScope } from "./staleness/credentials.js";
export type {
  FingerprintDrift,
  FingerprintRecord,
  Fingerprints,
} from "./staleness/fingerprints.js";
export type {
  CheckContext,
  CheckedResource,
  Checker,
  Checkers,
  CheckFunction,
  CompareContext,
  Compared,
  Observation,
  Resource,
  ResourceName,
  Tolerance,
  Verdict,
} from "./staleness/types.js";
export { HttpError, type IdempotentRequest, idempotentFetch } from "./steps/fetch.js";
export type { StepFailure } from "./steps/record.js";
export type { Drift, InputDrift, RunContext, VersionDrift } from "./steps/run.js";
export type {
  InDoubt,
  Probed,
  ReliedOn,
  RelyOn,
  StepDescription,
  StepSpec,
  Tool,
  ToolCall,
} from "./steps/spec.js";
export { StepError } from "./steps/step-error.js";
export type { Compacted, Replica, Storage, StoreDescription, Usage } from "./storage/port.js";
export {
  type AuditCheckpoint,
  type CheckpointRef,
  type CheckpointStatement,
  checkpointText,
  verifyAuditCheckpoint,
} from "./store/audit/checkpoint.js";
export type { AuditTrail } from "./store/audit/trail.js";
export type { AuditEvent, AuditKind, AuditOptions, AuditStep } from "./store/audit/types.js";
export type {
  AuditNotice,
  AuditProblem,
  AuditReport,
  VerifyAuditOptions,
} from "./store/audit/verify.js";
export type { BlameLine, BlameOptions } from "./store/blame.js";
export type { Branch } from "./store/branch.js";
export type { CompleteOptions } from "./store/complete.js";
export { type Diagnosis, diagnoseStore } from "./store/diagnose.js";
export type { DiscardOptions, LeftBehind } from "./store/discard.js";
export type {
  ErasedHead,
  EraseOptions,
  EraseReport,
  EraseRequest,
  ErasureReceipt,
  ErasureTarget,
  KnownExport,
  Residue,
} from "./store/erase/types.js";
export type { FsckProblem, FsckReport } from "./store/fsck.js";
export type { GcOptions, GcReport } from "./store/gc/collect.js";
export type { Granularity } from "./store/granularity.js";
export type { Boundary } from "./store/handoff/boundaries.js";
export type {
  FingerprintTolerance,
  Listed,
  ResourceChange,
  SessionFacts,
} from "./store/handoff/envelope.js";
export type { FreshnessOptions } from "./store/handoff/freshness.js";
export type { GivenTolerance, HandoffOptions } from "./store/handoff/handoff.js";
export type { Handoff } from "./store/handoff/info.js";
export type { Resumption, SessionMark } from "./store/handoff/mark.js";
export type { FreshnessReport, ResumeOptions, ResumeReport } from "./store/handoff/resume.js";
export type { GivenSummary, HandoffSummary } from "./store/handoff/summary.js";
export type { HoldInfo, HoldOptions, ReleaseOptions } from "./store/holds.js";
export type {
  DestroyedKey,
  DestroyKeyOptions,
  RotatedKey,
  RotateKeyOptions,
  WorkflowKeyInfo,
} from "./store/keys/change.js";
export type { KeyOptions } from "./store/keys/options.js";
export type { AcquireOptions, LeaseInfo } from "./store/lease/acquire.js";
export type { Lease } from "./store/lease/lease.js";
export type { StoredMerge } from "./store/merge/merging.js";
export type {
  Conflict,
  ConflictSide,
  ConflictValue,
  Contribution,
  MergeOptions,
  MergePolicyOptions,
  MergePreview,
  MergeRecord,
  MergeResult,
  PickOptions,
  PickResult,
  ResolveFunction,
  StoredMergeInfo,
} from "./store/merge/types.js";
export type { Guard, GuardOptions } from "./store/pressure/guard.js";
export type { ReadFrom } from "./store/primary.js";
export type { DeclarationChange, RedeclareOptions } from "./store/redeclare.js";
export type {
  HistoryReport,
  Keeper,
  Kept,
  PayloadReport,
  RetentionOptions,
  RetentionReport,
  Tally,
} from "./store/retention/types.js";
export type {
  ApproveOptions,
  DecideOptions,
  Review,
  ReviewFilter,
  ReviewInfo,
} from "./store/reviews/review.js";
export type { SchemaOption, StateMigration, StateSchema } from "./store/schema/schema.js";
export type {
  BranchMigration,
  MigratedPath,
  MigrateStateOptions,
  StateMigrationReport,
} from "./store/schema/types.js";
export type { SideEffect } from "./store/side-effects.js";
export type {
  Candidate,
  Discarded,
  SpeculateOptions,
  SpeculateResult,
  SpeculationStrategy,
} from "./store/speculate.js";
export type { AgentStats, Share, WorkflowStats } from "./store/stats.js";
export type { StepDetails, StepFilter } from "./store/steps/list.js";
export type { RunOptions } from "./store/steps/run.js";
export type {
  TraceNotice,
  TraceProblem,
  TraceReport,
  VerifyTraceOptions,
} from "./store/trace/types.js";
export { verifyTrace, type WorkflowSource } from "./store/trace/verify.js";
export type {
  Classification,
  Commit,
  CommitOptions,
  CreateWorkflowOptions,
  Keyed,
  LogOptions,
  Phase,
  Placed,
  PlacedPart,
  ReadStateOptions,
  Ref,
  ReflogLine,
  State,
  StepInfo,
  StepToRecord,
  WorkflowDeclaration,
  WorkflowInfo,
  WriteOptions,
} from "./store/types.js";
export type { Move, Moves, Positions, WatchOptions } from "./store/watch.js";
export type {
  BranchOptions,
  DeleteBranchOptions,
  DeletedBranch,
  OpenOptions,
  RefChangeOptions,
  ResetBranch,
  ResetOptions,
  Workflow,
} from "./store/workflow.js";
export {
  type MigrateStoreOptions,
  type MigrationReport,
  migrateStore,
  type OpenStoreOptions,
  openStore,
  type Store,
} from "./store.js";
export type { TracingOptions } from "./tracing/open-telemetry.js";
export { readTrace } from "./tracing/read-trace.js";
export type { PayloadOptions, Redact } from "./tracing/redact.js";
export type { SpanAttributes, SpanValue, TraceSpan } from "./tracing/trace-span.js";
