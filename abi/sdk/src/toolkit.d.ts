export { z } from "zod";
export { tool, ToolValidationError } from "./tool.js";
export { shortId, shortIdBatch } from "./ids.js";
export { withPendingProposals } from "./result.js";
