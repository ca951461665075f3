import { loadModule, parsePlPgSQLSync, parseSync } from "@libpg-query/parser";

/** A node of what PostgreSQL's own parser makes of SQL. */
export type Node = Readonly<Record<string, unknown>>;

/** Before anything is parsed. */
export const loadParser = loadModule;

export function parse(sql: string): Node[] {
  const { stmts = [] } = parseSync(sql) as { stmts?: { stmt?: unknown }[] };
  return stmts.map(({ stmt }) => stmt as Node);
}

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** All nodes of a kind below a value, itself included. */
export function* find(value: unknown, kind: string): Generator<Node> {
  if (Array.isArray(value)) {
    for (const item of value) yield* find(item, kind);
    return;
  }
  if (!isNode(value)) return;
  for (const [name, child] of Object.entries(value)) {
    if (name === kind && isNode(child)) yield child;
    yield* find(child, kind);
  }
}

/** The texts of a list of names, such as a function's or a column's. */
export function names(list: unknown): string[] {
  return ((list ?? []) as Node[]).map((node) => {
    const text = node.String as { sval?: string } | undefined;
    return text?.sval ?? "*";
  });
}

/** A function that a script makes. */
export interface SqlFunction {
  readonly name: string;
  readonly parameters: readonly string[];
  /** Its statements, and its expressions as statements. */
  readonly statements: readonly string[];
  /** Whether it runs text that only it knows. */
  readonly dynamic: boolean;
}

/** The functions that a script makes, in PL/pgSQL or SQL. */
export function functionsOf(sql: string): SqlFunction[] {
  const { stmts = [] } = parseSync(sql) as {
    stmts?: { stmt?: Node; stmt_location?: number; stmt_len?: number }[];
  };
  const bytes = Buffer.from(sql);
  return stmts.flatMap(({ stmt, stmt_location: from = 0, stmt_len: length }) => {
    const made = stmt?.CreateFunctionStmt as Node | undefined;
    if (made === undefined) return [];
    const text = bytes.subarray(from, length && from + length).toString();
    const parameters = ((made.parameters ?? []) as Node[]).map(
      ({ FunctionParameter: one }) => (one as { name: string }).name,
    );
    const name = names(made.funcname).at(-1) as string;
    const option = (of: string) =>
      [...find(made.options, "DefElem")].find(({ defname }) => defname === of)?.arg;
    const [language] = [...find(option("language"), "String")].map(({ sval }) => sval);
    if (language !== "plpgsql") {
      const [body] = names((option("as") as { List: { items: unknown } }).List.items);
      return [{ name, parameters, statements: [body ?? ""], dynamic: false }];
    }
    const tree = parsePlPgSQLSync(text);
    const statements = [...find(tree, "PLpgSQL_expr")].map(statementOf);
    const dynamic =
      [...find(tree, "PLpgSQL_stmt_dynexecute"), ...find(tree, "PLpgSQL_stmt_dynfors")].length > 0;
    return [{ name, parameters, statements, dynamic }];
  });
}

/** PL/pgSQL's parse modes: 0 is a statement, 2 an expression, from 3 on an assignment. */
function statementOf({ query, parseMode }: Node): string {
  const text = query as string;
  if (parseMode === 0 || parseMode === undefined) return text;
  if (parseMode === 2) return `SELECT ${text}`;
  return `SELECT ${text.slice(text.indexOf(":=") + 2)}`;
}
