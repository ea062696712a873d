// A thousand reads of records.
export default async (ctx) => {
  let sum = 0;
  for (let at = 0; at < 1000; at++) sum += (await ctx.pluginData.get("log", `k${at % 100}`)).n;
  return { outcome: "success", value: { sum } };
};
