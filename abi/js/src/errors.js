// Reads a thrown value without trusting it: any getter may throw, anything may be thrown.
const read = (value, key) => {
  try {
    return value[key];
  } catch {
    return undefined;
  }
};
const text = (value) => (typeof value === "string" ? value : undefined);

export function describeError(error) {
  if (error === null || (typeof error !== "object" && typeof error !== "function")) {
    let message;
    try {
      message = String(error);
    } catch {
      message = "an unprintable value was thrown";
    }
    return { name: error === null ? "null" : typeof error, code: undefined, message, stack: undefined, details: undefined };
  }
  return {
    name: text(read(error, "name")) ?? "Error",
    code: text(read(error, "code")),
    message: text(read(error, "message")) ?? "an object without a message was thrown",
    stack: text(read(error, "stack")),
    details: read(error, "details"),
  };
}

/** Message and stack of a module that failed to load. */
export function placed(error) {
  const { name, message, stack } = describeError(error);
  return [name === "ModuleError" ? message : `${name}: ${message}`, stack];
}

/** An error with a stable `code`. */
export function coded(code, message, name = "Error") {
  const error = new Error(message);
  error.name = name;
  error.code = code;
  return error;
}
