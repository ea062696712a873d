// The kernel: the first module of every isolate. It makes the globals plugin code relies on, the `covel` object and
// the contexts of calls. `h` are the host's functions; plugin code never gets hold of `h` itself.
import { installGlobals, timers } from "./globals.js";
import { makeContext, makeLazyMember, endContext, abortContext } from "./context.js";
import { makeEntry } from "./entry.js";
import { coded, describeError, placed } from "./errors.js";

/** The host's functions, for the host modules only: plugin code cannot import this module. */
export let host;
const offered = new Map();
/** A host module offers what globals are made of. */
export const publish = (name, values) => offered.set(name, values);
/**
 * What a host module offers, loading it now if need be. Such a module is loaded in no other way: the engine cannot load a
 * module at once while that module is being evaluated.
 */
export const published = (name) => {
  if (!offered.has(name)) {
    offered.set(name, undefined);
    host.importNow(name);
  }
  // Nothing while the module itself is being evaluated: packages look whether a global is there before they make it.
  return offered.get(name);
};

function parse(schema, value, name, what) {
  try {
    return schema.parse(value);
  } catch (error) {
    throw coded(`invalid-${what}`, `service ${name}: its ${what} does not fit its schema: ${describeError(error).message}`, "ServiceError");
  }
}

/** What a service's handler threw. An error of a service it called itself does not pass for one of its own. */
function ownFault(error) {
  const { name, message } = describeError(error);
  return name === "ServiceError" || name === "TimeoutError" || name === "AbortError" ? coded("provider-error", message, "ServiceError") : error;
}

export default function boot(h, pluginId) {
  host = h;
  installGlobals(h, published);
  const handlers = new Map();
  const registry = { tool: new Map(), rpc: new Map(), service: new Map(), extension: new Map(), hook: new Map(), form: new Map(), wires: undefined };
  const entry = makeEntry(h, pluginId, registry, published);

  async function moduleDefault(path) {
    let found = handlers.get(path);
    if (found === undefined) {
      let module;
      try {
        module = await import(`package:${path}`);
      } catch (error) {
        h.loadFailed(...placed(error));
        return undefined;
      }
      found = module.default;
      if (typeof found !== "function") {
        h.loadFailed(`${path} has no default function export`);
        return undefined;
      }
      handlers.set(path, found);
    }
    return found;
  }

  async function run(id, kind, name, names, inputs, flags) {
    switch (kind) {
      case "entry":
        return entry.run(name);
      case "dispose":
        return entry.dispose();
      case "handler":
      case "guard": {
        const cached = handlers.get(name);
        const handler = cached ?? (await moduleDefault(name));
        if (handler === undefined) return undefined;
        return handler(makeContext(h, id, names, inputs, flags));
      }
      case "tool": {
        const tool = registry.tool.get(name);
        if (tool === undefined) return void h.loadFailed(`no tool named ${name} is registered`);
        return tool.execute(h.argument(id), makeContext(h, id, names, inputs, flags));
      }
      case "rpc": {
        const rpc = registry.rpc.get(name);
        if (rpc === undefined) return void h.loadFailed(`no action named ${name} is registered`);
        return rpc.handler(h.argument(id), makeContext(h, id, names, inputs, flags));
      }
      case "service": {
        const service = registry.service.get(name);
        if (service === undefined) return void h.loadFailed(`no service named ${name} is registered`);
        const { input, output, handler } = service;
        // `parse` is all that is asked of a schema. SVC-9
        const parsed = parse(input, h.argument(id), name, "input");
        const context = makeContext(h, id, names, inputs, flags);
        let given;
        try {
          given = await handler(parsed, context);
        } catch (error) {
          throw ownFault(error);
        }
        return parse(output, given, name, "output");
      }
      case "hook": {
        const hook = registry.hook.get(Number(name));
        if (hook === undefined) return void h.loadFailed(`there is no hook handler ${name}`);
        // Each gets a private copy.
        if (hook.match !== undefined && hook.match(h.argument(id)) !== true) return null;
        return hook.handler(makeContext(h, id, names, inputs, flags), h.argument(id));
      }
      case "extension": {
        const extension = registry.extension.get(name);
        if (extension === undefined) return void h.loadFailed(`no extension ${name.replace("\0", " ")} is registered`);
        return extension.handler(h.argument(id), makeContext(h, id, names, inputs, flags));
      }
      case "form": {
        const validator = registry.form.get(name);
        if (validator === undefined) return void h.loadFailed(`no form validator named ${name} is registered`);
        const { values, data } = h.argument(id) ?? {};
        const { locale, messages } = makeContext(h, id, names, inputs, flags);
        return validator(values, data, Object.freeze({ locale, messages }));
      }
      default:
        return void h.loadFailed(`unknown kind of call ${kind}`);
    }
  }

  async function start(id, kind, name, names, inputs, flags) {
    let value;
    try {
      value = await run(id, kind, name, names, inputs, flags);
    } catch (error) {
      const d = describeError(error);
      endContext(id);
      h.fail(id, d.name, d.code, d.message, d.stack, d.details);
      return;
    }
    endContext(id);
    h.done(id, value);
  }

  return {
    start,
    fire: timers.fire,
    abort: abortContext,
    lazyMember: makeLazyMember(h),
  };
}
