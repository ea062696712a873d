export default async function count(ctx) {
  const { n } = (await ctx.pluginData.get("counts", "turns")) ?? { n: 0 };
  await ctx.pluginData.set("counts", "turns", { n: n + 1 });
  return { outcome: "success" };
}
