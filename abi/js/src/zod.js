export * from "zod/v4";
export { z, default } from "zod/v4";
