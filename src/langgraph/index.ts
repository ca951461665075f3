/**
 * agstate/langgraph: LangGraph's checkpoints in an agstate store.
 *
 * @module
 */
export { AgstateSaver, type AgstateSaverOptions } from "./saver.js";
