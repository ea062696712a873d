import { host } from "covel:kernel";
/** A text file of the package, or undefined. For host modules only. */
export const readPackageText = (path) => host.readText(path);
