// The same checks, in JavaScript.

/** @type {import("@covel/plugin-handlers-utils").PluginEntryFactory} */
export default function (covel) {
  covel.provideExtension("prompt.segment@1", "direction", {
    handler: (_input, ctx) => [{ id: "direction", content: ctx.language, position: "system" }], //~ TS2339 language
  });
  covel.onDispose("close"); //~ TS2345 string
}
/** @type {import("@covel/plugin-handlers-utils").FunctionHandler} */
export async function handler(ctx) {
  const untyped = (value) => value; //~ TS7006 value
  return { outcome: "success", effects: { notifications: [{ level: "fatal", title: untyped(ctx.locale) }] } }; //~ TS2322 "fatal"
}
