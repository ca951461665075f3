import { find, functionsOf, type Node, names, parse } from "./sql-tree.js";

/** What is known of a store's schema from the scripts that make it. */
export interface Schema {
  /** Tables with a column workflow_id. */
  readonly workflowTables: ReadonlySet<string>;
  /** All others. */
  readonly otherTables: ReadonlySet<string>;
}

const KEY = "workflow_id";

/** Reads which tables scripts make. */
export function schemaOf(scripts: readonly string[]): Schema {
  const workflowTables = new Set<string>();
  const otherTables = new Set<string>();
  for (const made of find(scripts.map(parse), "CreateStmt")) {
    const columns = [...find(made.tableElts, "ColumnDef")].map(({ colname }) => colname);
    (columns.includes(KEY) ? workflowTables : otherTables).add(relationOf(made.relation));
  }
  return { workflowTables, otherTables };
}

const relationOf = (relation: unknown) => (relation as { relname: string }).relname;

/** What in scripts is not allowed where tables are distributed by workflow_id. */
export function checkDefinitions(scripts: readonly string[], schema: Schema): string[] {
  const wrong: string[] = [];
  const tree = scripts.map(parse);
  for (const _ of find(tree, "CreateTrigStmt")) wrong.push("a trigger");
  for (const _ of find(tree, "CreateSeqStmt")) wrong.push("a sequence");
  for (const call of find(tree, "FuncCall"))
    if (["nextval", "setval"].includes(names(call.funcname).at(-1) as string))
      wrong.push("a number of a sequence");
  for (const column of find(tree, "ColumnDef")) {
    const type = names((column.typeName as Node | undefined)?.names).at(-1) ?? "";
    if (/serial[248]?$/.test(type)) wrong.push(`${column.colname} is ${type}`);
  }
  const keyed = (what: string, columns: readonly string[], table: string) => {
    if (schema.workflowTables.has(table) && !columns.includes(KEY))
      wrong.push(`${what} of ${table} without ${KEY}`);
  };
  const constraints = (elements: unknown, table: string) => {
    for (const column of find(elements, "ColumnDef"))
      for (const constraint of find(column.constraints, "Constraint"))
        check(constraint, [column.colname as string], table);
    for (const element of (elements ?? []) as Node[]) {
      const constraint = element.Constraint as Node | undefined;
      if (constraint) check(constraint, names(constraint.keys), table);
    }
  };
  const check = (constraint: Node, columns: readonly string[], table: string) => {
    const kind = constraint.contype as string;
    if (kind === "CONSTR_IDENTITY") wrong.push(`an identity in ${table}`);
    if (kind === "CONSTR_PRIMARY" || kind === "CONSTR_UNIQUE") keyed(kind, columns, table);
    if (kind === "CONSTR_FOREIGN") {
      const own = constraint.fk_attrs === undefined ? columns : names(constraint.fk_attrs);
      keyed(kind, own, table);
      if (own.includes(KEY) && !schema.workflowTables.has(relationOf(constraint.pktable)))
        wrong.push(`${kind} of ${table} to a table that is not distributed alike`);
    }
  };
  for (const made of find(tree, "CreateStmt"))
    constraints(made.tableElts, relationOf(made.relation));
  for (const altered of find(tree, "AlterTableStmt")) {
    const definitions = [...find(altered.cmds, "AlterTableCmd")].map(({ def }) => def);
    constraints(definitions, relationOf(altered.relation));
  }
  for (const index of find(tree, "IndexStmt"))
    if (index.unique === true) {
      const columns = [...find(index.indexParams, "IndexElem")].map(({ name }) => name as string);
      keyed("a unique index", columns, relationOf(index.relation));
    }
  return wrong;
}

/**
 * What in a function that runs where its workflow is breaks the rules for such: of its statements,
 * and of what it touches besides.
 *
 * @param calls functions of ours that it may call, since they are there too
 */
export function checkFunction(
  sql: string,
  name: string,
  schema: Schema,
  calls: ReadonlySet<string>,
): string[] {
  const made = functionsOf(sql).findLast((one) => one.name === name);
  if (made === undefined) return [`there is no function ${name}`];
  const wrong = made.statements.flatMap((text) => checkStatement(text, schema));
  if (made.dynamic) wrong.push("a statement that is not known before it runs");
  for (const text of made.statements) {
    const tree = parse(text);
    for (const { relname } of [...find(tree, "RangeVar"), ...find(tree, "relation")])
      if (schema.otherTables.has(relname as string)) wrong.push(`touches ${relname}`);
    for (const call of find(tree, "FuncCall")) {
      const path = names(call.funcname);
      const called = path.at(-1) as string;
      if (path.length > 1 && path[0] !== "pg_catalog" && !calls.has(called))
        wrong.push(`calls ${called}`);
    }
  }
  return wrong;
}

/** What in a statement breaks the rules for distributed tables. */
export function checkStatement(text: string, schema: Schema): string[] {
  const wrong: string[] = [];
  const tree = parse(text);
  const aliases = aliasesIn(tree);
  // The parts of a union stand in fields of their own.
  for (const kind of ["SelectStmt", "larg", "rarg", "UpdateStmt", "DeleteStmt"])
    for (const statement of find(tree, kind)) wrong.push(...checkScope(statement, schema, aliases));
  for (const statement of find(tree, "InsertStmt"))
    wrong.push(...checkInsert(statement, schema, aliases));
  const settings = [...find(tree, "UpdateStmt"), ...find(tree, "onConflictClause")];
  for (const { targetList } of settings)
    for (const { ResTarget: target } of (targetList ?? []) as { ResTarget: Node }[]) {
      if (target.name === KEY) wrong.push(`sets ${KEY}`);
      if (isElement(target.val)) wrong.push(`sets ${target.name} to an element of an array`);
    }
  return wrong;
}

/** Whether an expression takes an element out of an array anywhere. */
const isElement = (value: unknown) => [...find(value, "A_Indices")].length > 0;

/** That each table of a statement is held to one workflow. */
function checkScope(statement: Node, schema: Schema, aliases: ReadonlySet<string>): string[] {
  const from = [statement.relation && { RangeVar: statement.relation }, statement.fromClause];
  const tables = [...own(from, "RangeVar")].concat([...own(statement.usingClause, "RangeVar")]);
  const conditions = [
    ...conjuncts(statement.whereClause),
    ...[...own(from, "JoinExpr")].flatMap(({ quals }) => conjuncts(quals)),
  ];
  return tables
    .filter(({ relname }) => schema.workflowTables.has(relname as string))
    .filter((table) => {
      const alias = aliasOf(table);
      return !conditions.some((condition) => binds(condition, alias, tables.length === 1, aliases));
    })
    .map(({ relname }) => `${relname} without an equality on ${KEY}`);
}

const aliasOf = (table: Node) =>
  ((table.alias as { aliasname?: string } | undefined)?.aliasname ?? table.relname) as string;

/** What a statement calls its tables, and whatever stands like one: the first part of a name that is no variable. */
function aliasesIn(tree: unknown): Set<string> {
  const aliases = [...find(tree, "alias")].map(({ aliasname }) => aliasname as string);
  const tables = [...find(tree, "RangeVar"), ...find(tree, "relation")].map(aliasOf);
  return new Set([...aliases, ...tables]);
}

/** Nodes of a kind, but none of a query within. */
function* own(value: unknown, kind: string): Generator<Node> {
  if (Array.isArray(value)) {
    for (const item of value) yield* own(item, kind);
  } else if (typeof value === "object" && value !== null) {
    for (const [name, child] of Object.entries(value)) {
      if (["SelectStmt", "larg", "rarg"].includes(name)) continue;
      if (name === kind) yield child as Node;
      yield* own(child, kind);
    }
  }
}

/** The conditions that all must hold. */
function conjuncts(condition: unknown): Node[] {
  if (condition === undefined || condition === null) return [];
  const both = (condition as Node).BoolExpr as Node | undefined;
  if (both?.boolop === "AND_EXPR") return (both.args as Node[]).flatMap(conjuncts);
  return [condition as Node];
}

/** Whether a condition holds a table's key to one value that comes from outside. */
function binds(
  condition: Node,
  alias: string,
  only: boolean,
  aliases: ReadonlySet<string>,
): boolean {
  const equal = condition.A_Expr as Node | undefined;
  if (equal?.kind !== "AEXPR_OP" || names(equal.name).at(-1) !== "=") return false;
  const sides = [equal.lexpr, equal.rexpr] as Node[];
  return sides.some((side, i) => {
    const column = columnOf(side);
    const ofTable = column.at(-1) === KEY && (column.length === 1 ? only : column[0] === alias);
    return ofTable && isGiven(sides[1 - i] as Node, aliases);
  });
}

const columnOf = (node: Node | undefined): string[] =>
  names((node?.ColumnRef as Node | undefined)?.fields);

/** Whether a value is a parameter, a constant or a variable, and none of a table's. */
function isGiven(node: Node, aliases: ReadonlySet<string>): boolean {
  if (node.ParamRef !== undefined || node.A_Const !== undefined) return true;
  const path = columnOf(node);
  if (path.length === 1) return path[0] !== KEY;
  return path.length > 1 && !aliases.has(path[0] as string);
}

/** That a row is for one workflow, which is given, and that no column's value is an array's element. */
function checkInsert(statement: Node, schema: Schema, aliases: ReadonlySet<string>): string[] {
  const table = relationOf(statement.relation);
  if (!schema.workflowTables.has(table)) return [];
  const columns = [...find(statement.cols, "ResTarget")].map(({ name }) => name as string);
  const at = columns.indexOf(KEY);
  if (at < 0) return [`inserts into ${table} without ${KEY}`];
  const wrong: string[] = [];
  const source = (statement.selectStmt as { SelectStmt: Node }).SelectStmt;
  const lists = ((source.valuesLists ?? []) as { List: { items: Node[] } }[]).map(
    ({ List }) => List.items,
  );
  if (lists.length === 0) {
    lists.push(
      ((source.targetList ?? []) as { ResTarget: { val: Node } }[]).map(
        ({ ResTarget }) => ResTarget.val,
      ),
    );
    const makers = [...find(source.fromClause, "FuncCall")].map(({ funcname }) => names(funcname));
    if (makers.some((path) => path.at(-1) === "unnest"))
      wrong.push(`inserts into ${table} what unnest gives`);
  }
  const tables = [...own(source.fromClause, "RangeVar")];
  for (const list of lists) {
    const given = list[at] as Node;
    // A row's own key, where the query that reads it is held to one.
    const copied = columnOf(given).at(-1) === KEY && tables.length === 1;
    if (!copied && !isGiven(given, aliases))
      wrong.push(`inserts into ${table} for no one workflow`);
    if (list.some(isElement)) wrong.push(`inserts into ${table} an element of an array`);
  }
  return wrong;
}
