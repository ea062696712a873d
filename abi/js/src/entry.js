// The `covel` object and an entry's life: factory, registrations, disposers. LIF-1..3
import { AbortController } from "./abort.js";
import { coded, placed } from "./errors.js";

export function makeEntry(h, pluginId, registry, published) {
  const controller = new AbortController();
  const disposers = [];
  let open = false;
  let closed = false;

  const need = () => {
    if (!open) throw coded("plugin_registration_closed", "registrations are accepted only while the entry factory runs");
  };
  const nonEmpty = (value, what) => {
    if (typeof value !== "string" || value.trim() === "") throw new TypeError(`${what} must be a non-empty string`);
    return value;
  };
  const callable = (value, what) => {
    if (typeof value !== "function") throw new TypeError(`${what} must be a function`);
    return value;
  };

  async function run(path) {
    const covel = Object.freeze({
      pluginId,
      signal: controller.signal,
      get toolkit() {
        return published("covel:offered-toolkit").toolkit;
      },
      http: Object.freeze({
        validateBaseUrl: (url) => ({ ok: false, reason: `HTTP is not available to plugins of this host (${url})` }),
        async fetchWithRetry() {
          throw coded("http-unavailable", "HTTP is not available to plugins of this host");
        },
      }),
      onDispose(fn) {
        need();
        disposers.push(callable(fn, "onDispose's argument"));
      },
      registerTool(module) {
        need();
        if (module === null || typeof module !== "object" || module._type !== "covel-tool") {
          throw new TypeError("registerTool takes a module made by covel.toolkit.tool");
        }
        const { name, description, jsonSchema } = module;
        h.register("tool", name, { description, jsonSchema });
        registry.tool.set(name, module);
      },
      registerRpc(action, handler, options = {}) {
        need();
        nonEmpty(action, "an action");
        callable(handler, "an action's handler");
        h.register("rpc", action, { description: options.description, trustLevel: options.trustLevel });
        registry.rpc.set(action, { handler });
      },
      registerService(definition) {
        need();
        const { name, contract, description, input, output, handler } = definition;
        nonEmpty(name, "a service's name");
        nonEmpty(contract, "a service's contract");
        callable(handler, "a service's handler");
        if (typeof input?.parse !== "function" || typeof output?.parse !== "function") {
          throw new TypeError(`service ${name}: input and output need a parse method`);
        }
        h.register("service", name, {
          contract,
          description,
          modelFacing: definition.modelFacing === true,
          access: definition.access === undefined ? undefined : String(definition.access),
        });
        registry.service.set(name, definition);
      },
      registerFormValidator(name, validator) {
        need();
        nonEmpty(name, "a form validator's name");
        h.register("form", name, {});
        registry.form.set(name, callable(validator, "a form validator"));
      },
      registerWires(module) {
        need();
        const kinds = {};
        for (const kind of ["image", "speech", "transcription", "music", "text"]) {
          const list = module?.[kind];
          if (list === undefined) continue;
          if (!Array.isArray(list)) throw new TypeError(`wires of kind ${kind} must be an array`);
          kinds[kind] = list.map((wire) => nonEmpty(wire?.id, `a ${kind} wire's id`));
        }
        h.register("wires", "wires", kinds);
        registry.wires = module;
      },
      provideExtension(point, id, definition) {
        need();
        nonEmpty(point, "an extension point");
        nonEmpty(id, "an extension id");
        callable(definition?.handler, "an extension's handler");
        h.register("extension", `${point}\u0000${id}`, { point, id });
        registry.extension.set(`${point}\u0000${id}`, definition);
      },
      on(event, handler, options = {}) {
        need();
        nonEmpty(event, "a hook event");
        callable(handler, "a hook handler");
        if (options.match !== undefined) callable(options.match, "a hook's match");
        const enforce = options.enforce ?? "normal";
        const index = h.register("hook", `${event}\u0000${enforce}`, {
          event,
          enforce,
          timeoutMs: options.timeoutMs,
          hasMatch: options.match !== undefined,
        });
        registry.hook.set(index, { handler, match: options.match });
      },
    });
    let module;
    try {
      module = await import(`package:${path}`);
    } catch (error) {
      h.loadFailed(...placed(error));
      return;
    }
    const factory = module.default;
    if (typeof factory !== "function") {
      h.loadFailed(`${path} has no default function export`);
      return;
    }
    open = true;
    try {
      await factory(covel);
    } finally {
      open = false;
    }
  }

  // Aborts the activation's signal, then runs disposers, last registered first; one failing does not stop the rest. LIF-2
  async function dispose() {
    open = false;
    if (closed) return [];
    closed = true;
    controller.abort();
    const failures = [];
    for (const fn of disposers.reverse()) {
      try {
        await fn();
      } catch (error) {
        failures.push(error instanceof Error ? error.message : String(error));
      }
    }
    disposers.length = 0;
    return failures;
  }

  return { run, dispose };
}
