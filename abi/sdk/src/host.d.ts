// A module of the host, not of this package.
declare module "covel:package" {
  /** A text file of the package, or undefined. */
  export function readPackageText(path: string): string | undefined;
}
// As much of Node.js as `prompts-node.js` uses.
declare module "node:fs" {
  export function readFileSync(path: string, encoding: "utf8"): string;
}
