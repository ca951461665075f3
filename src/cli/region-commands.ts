import type { Command } from "commander";
import { command, type MakeAction } from "./command.js";

/** Adds the commands about a file of regions, which `--regions` names. */
export function addRegionCommands(program: Command, action: MakeAction): void {
  const region = command(program, "region", "show the regions of a file, and enter workflows");
  region.addHelpText("after", REGION_HELP);
  command(region, "list", "open the store of each region, and tell how it is")
    .addHelpText("after", REGION_HELP)
    .action(action(() => import("./commands/region-list.js")));
  command(
    region,
    "adopt <workflow> <region>",
    "enter a workflow that was made without the catalogue",
  ).action(action(() => import("./commands/region-adopt.js")));
}

const REGION_HELP = `
A file of regions is JSON, such as
  {"catalogue":"sqlite:catalogue",
   "regions":{"eu":{"store":"postgres://app:\${EU_PASSWORD}@eu.example/agents",
                    "classifications":["public","internal","sensitive"]}}}
The store of each is made by agstate init --region NAME; the catalogue, which
tells in which region each workflow lives, by agstate init.`;
