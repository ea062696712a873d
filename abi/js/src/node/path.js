import path from "path-browserify";
// No process here: the working directory is the package root.
globalThis.process ??= undefined;
const posix = path.posix ?? path;
const { basename, dirname, extname, format, isAbsolute, join, normalize, parse, relative, resolve, sep, delimiter } = posix;
export { basename, dirname, extname, format, isAbsolute, join, normalize, parse, relative, resolve, sep, delimiter, posix };
export default posix;
