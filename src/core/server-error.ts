/** What node-pg makes of an error of PostgreSQL's, as far as it is told; what else it has may hold values. */
interface ServerError extends Error {
  readonly severity?: string;
  readonly code?: string;
  readonly routine?: string;
  readonly schema?: string;
  readonly table?: string;
  readonly column?: string;
  readonly constraint?: string;
}

/**
 * A server's error without what can hold a value of a statement: its detail, hint and context, and its message where that
 * is not of a kind that names objects and settings only.
 */
class PostgresError extends Error {
  override readonly name = "PostgresError";
  readonly code: string;
  readonly severity: string;
  /** The function of the server that raised it. */
  declare readonly routine?: string;
  declare readonly schema?: string;
  declare readonly table?: string;
  declare readonly column?: string;
  declare readonly constraint?: string;

  /** @internal Made by {@link toldError}. */
  constructor(error: ServerError) {
    super(messageOf(error));
    this.code = error.code ?? "";
    this.severity = error.severity ?? "";
    for (const field of isRaised(error) ? (["routine"] as const) : FIELDS) {
      if (error[field] !== undefined) Object.assign(this, { [field]: error[field] });
    }
  }
}

const FIELDS = ["routine", "schema", "table", "column", "constraint"] as const;

/**
 * What may be told to callers of an error that node-pg gave: a server's error without values, any other as it is, as those
 * are of connections and of node-pg itself.
 */
export function toldError(error: unknown): unknown {
  return isServerError(error) ? new PostgresError(error) : error;
}

/** The message that may be told of an error. */
export function toldMessage(error: unknown): string {
  if (isServerError(error)) return messageOf(error);
  return error instanceof Error ? error.message : String(error);
}

function isServerError(error: unknown): error is ServerError {
  const { severity, code } = (error ?? {}) as { severity?: unknown; code?: unknown };
  return (
    error instanceof Error &&
    !(error instanceof PostgresError) &&
    typeof severity === "string" &&
    typeof code === "string"
  );
}

/** Whether a function of the schema raised it, or might have: it says, under any code, what it was written to say. */
function isRaised({ routine }: ServerError): boolean {
  return routine === undefined || RAISING.test(routine);
}

/** What raises what a function says: in PL/pgSQL, PL/Perl, PL/Python and PL/Tcl. */
const RAISING = /^(?:exec_stmt_raise|exec_stmt_assert|plperl_|PLy_|pltcl_|do_util_elog)/;

function messageOf(error: ServerError): string {
  const { code = "", severity } = error;
  // What ends a session is of the session, and no function can raise it.
  const isOfSession = severity === "FATAL" || severity === "PANIC";
  if (isOfSession || (!isRaised(error) && NAMES_ONLY.test(code))) return error.message;
  const condition = CONDITIONS[code] ?? CONDITIONS[code.slice(0, 2)] ?? "an error";
  const { table, column, constraint } = isRaised(error) ? ({} as Partial<ServerError>) : error;
  const where = [
    constraint === undefined ? "" : ` by constraint ${constraint}`,
    column === undefined ? "" : ` of column ${column}`,
    table === undefined ? "" : ` of table ${table}`,
  ];
  return `${condition}${where.join("")}; the server's log has its message`;
}

/** SQLSTATEs whose messages name objects, settings and files, never values. */
const NAMES_ONLY =
  /^(?:0A|08|25|26|28|3D|3F|40|53|54|55|57|58)|^(?:42501|42701|42703|42704|42710|42723|42883|42P01|42P05|42P06|42P07|XX001|XX002)$/;

/** Names of SQLSTATEs and of their classes, as in the appendix on error codes of PostgreSQL's manual. */
const CONDITIONS: Readonly<Record<string, string | undefined>> = {
  "21": "cardinality violation",
  "22": "data exception",
  "22001": "string data right truncation",
  "22003": "numeric value out of range",
  "22004": "null value not allowed",
  "22007": "invalid datetime format",
  "22008": "datetime field overflow",
  "22012": "division by zero",
  "22021": "character not in repertoire",
  "22023": "invalid parameter value",
  "2202E": "array subscript error",
  "22P02": "invalid text representation",
  "22P03": "invalid binary representation",
  "22P05": "untranslatable character",
  "23": "integrity constraint violation",
  "23502": "not null violation",
  "23503": "foreign key violation",
  "23505": "unique violation",
  "23514": "check violation",
  "23P01": "exclusion violation",
  "38": "external routine exception",
  "39": "external routine invocation exception",
  "42": "syntax error or access rule violation",
  "42601": "syntax error",
  "42804": "datatype mismatch",
  P0: "error of a PL/pgSQL function",
  P0001: "raised by a function",
  P0004: "assertion of a function failed",
  XX: "internal error",
};
