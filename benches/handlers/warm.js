export default (ctx) => ({ outcome: "success", value: { turn: ctx.logicalTurn } });
