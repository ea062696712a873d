// What the host does not have is an error in the editor already.
import { readFileSync } from "node:fs"; //~ TS2591 node:fs
import helper from "./compiled-elsewhere.js"; //~ TS2307 compiled-elsewhere
import { nothing } from "@covel/plugin-handlers-utils"; //~ TS2305 nothing
import internal from "@covel/plugin-handlers-utils/src/kernel.js"; //~ TS2307 kernel

export default async function handler() {
  await fetch("https://example.com"); //~ TS2304 fetch
  document.title = "x"; //~ TS2584 document
  console.log(process.env); //~ TS2591 process
  require("x"); //~ TS2591 require
  return [readFileSync, helper, nothing, internal];
}
enum Colour { Red } //~ TS1294 erasable
export const red = Colour.Red;
