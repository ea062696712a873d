const { setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate } = globalThis;
export { setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate };
export default { setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate };
