/** A page of documentation that shows files, and commands with what they print. */
export interface WalkThrough {
  readonly files: readonly { readonly name: string; readonly text: string }[];
  readonly commands: readonly { readonly command: string; readonly output: string }[];
}

/** Reads a page: what is indented after a line that ends with "`NAME`:" is that file, and `$` begins a command. */
export function readWalkThrough(markdown: string): WalkThrough {
  const files: { name: string; text: string }[] = [];
  const commands: { command: string; output: string }[] = [];
  let add = (_line: string) => {};
  for (const line of markdown.split("\n")) {
    const text = line.slice(4);
    if (line !== "" && !line.startsWith("    ")) {
      const name = /`([\w.-]+)`:$/.exec(line)?.[1];
      const file = { name: name ?? "", text: "" };
      if (name !== undefined) files.push(file);
      add = (more) => {
        file.text += `${more}\n`;
      };
    } else if (text.startsWith("$ ")) {
      const command = { command: text.slice(2), output: "" };
      commands.push(command);
      add = (more) => {
        command.output += `${more}\n`;
      };
    } else add(text);
  }
  return { files, commands };
}
