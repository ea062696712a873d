const { URL, URLSearchParams } = globalThis;
/** `package:` and `file:` URLs name files of the package. */
export function fileURLToPath(url) {
  const parsed = typeof url === "string" ? new URL(url) : url;
  if (parsed.protocol !== "file:" && parsed.protocol !== "package:") throw new TypeError(`not a file URL: ${parsed.href}`);
  return decodeURIComponent(parsed.pathname);
}
export function pathToFileURL(path) {
  return new URL(`file://${encodeURI(path.startsWith("/") ? path : `/${path}`)}`);
}
export { URL, URLSearchParams };
export default { URL, URLSearchParams, fileURLToPath, pathToFileURL };
