import { type Command, Option } from "commander";
import { command, type MakeAction } from "./command.js";

/** Adds the commands by which a person decides what agents may do. */
export function addReviewCommands(program: Command, action: MakeAction): void {
  const review = command(program, "review", "decide what agents have asked a person for");
  review.addHelpText("after", REVIEW_HELP);
  review
    .command("list", { isDefault: true })
    .description("list what waits for a decision (the default)")
    .option("--all", "also what was decided, expired, lapsed or denied by a rule")
    .option("--kind <kind>", "only approval, in-doubt or denial")
    .option("--branch <name>", "only of this branch")
    .action(action(() => import("./commands/review-list.js")));
  command(review, "show <id>", "show what is asked, what it depends on, and who decided").action(
    action(() => import("./commands/review-show.js")),
  );
  const decide = (usage: string, description: string): Command =>
    command(review, usage, description)
      .option("--reason <text>", "why, in one line")
      .option("--actor <id>", "who decides (default: the user of this computer)");
  decide("approve <id>", "let it happen, once, just as it was asked for")
    .addOption(
      new Option(
        "--happened [output]",
        "of a step in doubt: it did happen, and this came out (JSON)",
      ).conflicts("notHappened"),
    )
    .option("--not-happened", "of a step in doubt: it did not, and may run again")
    .action(action(() => import("./commands/review-approve.js")));
  decide("discard <id>", "refuse it").action(action(() => import("./commands/review-discard.js")));
}

const REVIEW_HELP = `
An approval holds for the very step that was asked for: its place, name, action
and input, and what stands at the paths of the state that its rule names. It
lapses when any of these changes. A decision is made once.`;
