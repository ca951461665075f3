import { setTimeout as sleep } from "node:timers/promises";
import { isAgstateError, StepError } from "../../dist/index.js";
import { say } from "../../test/fault/children/lines.mjs";
import { ask } from "./service.mjs";

/** How each variant goes on with a step that is in doubt. */
const IN_DOUBT = {
  honoured: () => "retry",
  governed: () => "retry",
  asked: () => "fail",
  probed:
    ({ service, points }, name) =>
    async ({ key }) => {
      points.at("probe:before", name);
      const { answer } = await ask(`${service}/happened?key=${key}`, { method: "GET" });
      points.at("probe:answered", name);
      return answer === null ? { happened: false } : { happened: true, output: answer };
    },
};

/** Steps of which each call of the tool, and each that came back, is told to the parent. */
function tools(world) {
  const { service, points, variant } = world;
  const told = async (ctx, spec, tool) => {
    const { name } = spec;
    const output = await ctx.step(spec, async (call) => {
      say(`tool ${name} ${call.attempt}`);
      points.at("tool:begin", name);
      return tool(call);
    });
    say(`back ${name} ${JSON.stringify(output)}`);
    points.at("acknowledged", name);
    return output;
  };
  const request = async (path, name, options) => {
    const url = `${service}/${path}name=${name}`;
    const sent = () => points.at("tool:sent", name);
    const answer = await ask(url, { ...options, sent });
    points.at("tool:answered", name);
    if (answer === null) throw new Error("the answer was lost");
    return answer;
  };
  const inDoubt = (name) => IN_DOUBT[variant](world, name);
  return {
    /** A step with a side effect; `fails` tells by attempt how it fails at first. */
    effect: (ctx, name, input, { action = "execute", fails = () => "no", ...rest } = {}) =>
      told(ctx, { name, action, input, inDoubt: inDoubt(name), ...rest }, ({ key, attempt }) => {
        const how = fails(attempt);
        if (how === "before") throw new Error("not reached");
        return request(how === "lost" ? "effect?lose&" : "effect?", name, { key, input });
      }),
    /** A step that fails each time. */
    refused: async (ctx, name) => {
      try {
        return await told(ctx, { name, action: "write", inDoubt: inDoubt(name) }, () => {
          throw new RangeError("no rooms");
        });
      } catch (error) {
        if (!(error instanceof StepError)) throw error;
        return error.message;
      }
    },
    /** A step that the rules deny. */
    denied: async (ctx, name) => {
      try {
        return await told(ctx, { name }, () => "it ran");
      } catch (error) {
        if (!isAgstateError(error, "STEP_DENIED")) throw error;
        return error.code;
      }
    },
    /** A call that costs money and answers otherwise each time. */
    paid: (ctx, name, how = { action: "inference" }) =>
      told(ctx, { name, input: name, ...how }, () => request("paid?", name)),
    told,
    inDoubt,
  };
}

const RETRY = { attempts: 3, pauseMs: 2 };

/** A trip is planned and booked: the work of the rounds of kills. */
export function trip(world) {
  const { effect, refused, denied, paid } = tools(world);
  const set = (path) => (value) => [{ op: "set", path, value }];
  const governed = world.variant === "governed";
  const honoured = world.variant === "honoured" || governed;
  const charge = (attempt) => {
    if (attempt === 1) return "before";
    // Had the effect and was not heard of: to be tried again only where keys are honoured.
    return attempt === 2 && honoured ? "lost" : "no";
  };
  return async (ctx) => {
    const now = await ctx.now();
    const plan = await paid(ctx, "plan");
    const uuid = await ctx.uuid();
    const reserve = await effect(ctx, "reserve", plan, {
      action: "write",
      update: set("/reserve"),
    });
    const look = await paid(ctx, "look", { action: "read", memoize: true });
    await ctx.update([{ op: "set", path: "/stage", value: "reserved" }]);
    const random = await ctx.random();
    const paidBy = await effect(ctx, "charge", { uuid }, { retry: RETRY, fails: charge });
    const refusal = await refused(ctx, "refuse");
    const erased = governed ? { erased: await denied(ctx, "erase") } : {};
    const part = (name, rest) => async (inner) => {
      const booked = await effect(inner, `book-${name}`, { refusal, random }, rest);
      await sleep(Math.random() * 3);
      return { booked, thought: await paid(inner, `think-${name}`) };
    };
    const parts = await ctx.all({
      a: part("a"),
      b: part("b", { retry: RETRY, fails: (attempt) => (attempt === 1 ? "before" : "no") }),
      c: part("c", { update: set("/c") }),
    });
    await ctx.sleep(3);
    const confirm = await effect(ctx, "confirm", { look }, { update: set("/confirm") });
    return {
      now,
      plan,
      uuid,
      reserve,
      look,
      random,
      charge: paidBy,
      refusal,
      ...erased,
      parts,
      confirm,
    };
  };
}

/** Many parts at once, half of them with side effects, of which none comes out alike twice. */
export function wide(world, width) {
  const { effect, told } = tools(world);
  return (ctx) => {
    const parts = Array.from({ length: width }, (_, i) => async (inner) => {
      if (i % 2 === 0) return effect(inner, `part-${i}`, { i });
      return told(inner, { name: `part-${i}`, action: "read", memoize: true }, async () => {
        await sleep(Math.random() * 30);
        return Math.random();
      });
    });
    return ctx.all(Object.fromEntries(parts.map((part, i) => [`p${i}`, part])));
  };
}

/** Side effects one after another: the work that ten processes do at once. */
export function line(world, length) {
  const { effect } = tools(world);
  return async (ctx) => {
    const receipts = [];
    for (let i = 0; i < length; i++) receipts.push(await effect(ctx, `effect-${i}`, { i }));
    return receipts;
  };
}
