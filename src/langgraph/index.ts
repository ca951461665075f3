/**
 * agstate/langgraph: LangGraph's checkpoints in an agstate store.
 *
 * @module
 */
export { AgstateSaver } from "./saver.js";
