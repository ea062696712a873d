import path from "path-browserify";
const posix = path.posix ?? path;
const { basename, dirname, extname, format, isAbsolute, join, normalize, parse, relative, resolve, sep, delimiter } = posix;
export { basename, dirname, extname, format, isAbsolute, join, normalize, parse, relative, resolve, sep, delimiter, posix };
export default posix;
