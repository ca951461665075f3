/** What `${NAME}` in a file of settings stands for. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** What is wrong with a text's variables, in words that hold no value of one. */
export interface VariableProblem {
  readonly problem: string;
}

const VARIABLE = /\$\{([^}]*)\}/g;
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * The names of a text's variables, once each has a value.
 *
 * A variable that is empty is missing: whoever forgot it must not reach another place than they meant.
 */
export function variablesOf(
  template: string,
  environment: Environment,
): readonly string[] | VariableProblem {
  if (template.replace(VARIABLE, "").includes("${")) {
    return { problem: "has a variable that no } closes" };
  }
  const names = [...template.matchAll(VARIABLE)].map(([, name]) => name as string);
  for (const name of names) {
    if (!NAME.test(name)) {
      return {
        problem:
          "has a variable whose name is none; letters, digits and _ make one, such as EU_PASSWORD",
      };
    }
    const value = environment[name];
    if (value === undefined || value === "") {
      return { problem: `needs the environment variable ${name}, which is not set or is empty` };
    }
  }
  return names;
}

/** A text with its variables, which `variablesOf` has found to have values, filled in. */
export function fillIn(
  template: string,
  environment: Environment,
  encode: (value: string) => string = (value) => value,
): string {
  return template.replace(VARIABLE, (_, name: string) => encode(environment[name] as string));
}
