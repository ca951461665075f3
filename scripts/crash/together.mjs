import { RunAudit } from "./audit.mjs";
import { startLife } from "./life.mjs";
import { startService } from "./service.mjs";

const PROCESSES = 10;
const LENGTH = 6;
const WIDTH = 100;

/** Lets ten processes run one branch at once: each side effect happens once, and who loses is told so. */
export async function race({ place, variant, round, random, tally }) {
  const honoursKeys = variant === "honoured";
  const service = await startService({ honoursKeys, random });
  try {
    const { branch, workflow } = await place.branch(`races/${variant}-${round}`);
    const audit = new RunAudit(tally, `${place.kind} ${branch.name}, ten at once`);
    const args = {
      url: place.url,
      workflow: workflow.id,
      branch: branch.name,
      service: service.url,
      variant,
      program: "line",
      size: LENGTH,
      together: true,
    };
    let ready = 0;
    const lives = Array.from({ length: PROCESSES }, () =>
      startLife(args, ([word]) => {
        if (word === "ready" && ++ready === PROCESSES) for (const { go } of lives) go();
      }),
    );
    const endings = await Promise.all(lives.map(({ ended }) => ended));
    await service.settle();
    await audit.read(branch);
    const names = Array.from({ length: LENGTH }, (_, i) => `effect-${i}`);
    audit.effects(service, names, { honoursKeys });
    const over = endings.filter(({ how }) => how === "over");
    audit.expect("one came to the end", over.length > 0, true);
    const receipts = names.map(
      (name) => service.effects.find((each) => each.name === name)?.answer,
    );
    for (const { result } of over) audit.expect("result", result, receipts);
  } finally {
    await service.close();
  }
}

/** Kills a run of 100 parallel steps again and again: its steps give in each process what they gave before. */
export async function replays({ place, rounds, random, tally }) {
  let killed = 0;
  for (let n = 0; killed < rounds; n++) {
    const service = await startService({ honoursKeys: true, random });
    try {
      const { branch, workflow } = await place.branch(`replays/${n}`);
      const audit = new RunAudit(tally, `${place.kind} ${branch.name}, in parallel`);
      const args = {
        url: place.url,
        workflow: workflow.id,
        branch: branch.name,
        service: service.url,
        variant: "honoured",
        program: "wide",
        size: WIDTH,
      };
      for (;;) {
        const sealed = [...audit.steps.values()].filter(
          ({ status }) => status === "completed",
        ).length;
        const further = sealed + Math.floor((random() * 2 * WIDTH) / rounds);
        // Every other life dies among what is on record, so that one run lasts for many of them.
        const wanted = killed % 2 === 0 ? further : Math.floor(random() * sealed);
        let back = 0;
        const hear = ([word], kill) => {
          if (word === "back" && ++back > wanted && killed < rounds) kill();
        };
        const ending = await startLife(args, hear).ended;
        await service.settle();
        audit.lived(ending.said);
        await audit.read(branch);
        if (ending.how === "killed") {
          killed++;
          tally.kills++;
          continue;
        }
        if (ending.how === "stopped") continue;
        const even = Array.from({ length: WIDTH / 2 }, (_, i) => `part-${2 * i}`);
        audit.effects(service, even, { honoursKeys: true });
        const outputs = {};
        for await (const { name, output } of branch.steps()) outputs[name] = output;
        for (let i = 0; i < WIDTH; i++) {
          audit.expect(`part ${i}`, ending.result[`p${i}`], outputs[`part-${i}`]);
        }
        break;
      }
    } finally {
      await service.close();
    }
  }
}
