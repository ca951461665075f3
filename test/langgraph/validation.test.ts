import { deltaChannelHistoryTests, validate } from "@langchain/langgraph-checkpoint-validation";
import { AgstateSaver } from "../../src/langgraph/index.js";
import { BACKENDS, newPlace, type Place } from "../support/stores.js";

/** LangGraph's own suite, every test of it, on each backend; each saver has a store of its own. */
for (const backend of BACKENDS) {
  const places = new Map<AgstateSaver, Place>();
  const initializer = {
    checkpointerName: `agstate on ${backend}`,
    createCheckpointer() {
      const place = newPlace(backend);
      const saver = AgstateSaver.fromConnString(place.url);
      places.set(saver, place);
      return saver;
    },
    async destroyCheckpointer(saver: AgstateSaver) {
      await saver.end();
      await places.get(saver)?.remove();
      places.delete(saver);
    },
  };
  validate(initializer);
  deltaChannelHistoryTests(initializer);
}
