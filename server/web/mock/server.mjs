// A stand-in for the real server, for work on the page: the same shapes, a scripted turn, no state on disk.
// `npm run mock` answers under /api and serves dist/ beside it (with the policy the page must live under).
// PORT (8787), SPEED (1; 0 = no pauses).

import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { commands, passages, plugins, specs, worlds } from "./data.mjs";

const PORT = Number(process.env.PORT ?? 8787);
const SPEED = Number(process.env.SPEED ?? 1);
const DIST = fileURLToPath(new URL("../dist/", import.meta.url));
const BODY_LIMIT = 1024 * 1024;
const CSP =
  "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; frame-src 'self'; object-src 'none'; base-uri 'self'; form-action 'self'";

const epoch = Date.now().toString(36);
const sessions = new Map();
let serial = 0;

const pause = (ms) => (SPEED > 0 && ms > 0 ? new Promise((done) => setTimeout(done, ms * SPEED)) : Promise.resolve());
const now = () => new Date().toISOString();

class Refusal extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

function newSession(body) {
  const world = worlds.find((entry) => entry.id === body.worldId);
  if (body.worldId !== undefined && !world) throw new Refusal(404, "world_not_found", `no world ${body.worldId}`);
  const id = body.id ?? `${body.worldId ?? "session"}-${(++serial).toString(16).padStart(8, "0")}`;
  if (sessions.has(id)) throw new Refusal(409, "session_already_exists", `session ${id} exists`);
  const session = {
    record: {
      id,
      worldId: body.worldId,
      locale: body.locale ?? world?.locale ?? "en",
      status: "active",
      phase: "setup",
      completedPlayerTurns: 0,
      activePlugins: body.plugins ?? world?.defaultPluginIds ?? [],
      createdAt: now(),
      updatedAt: now(),
    },
    messages: [],
    turns: [],
    data: new Map(),
    listeners: new Set(),
    running: undefined,
    seq: 0,
  };
  sessions.set(id, session);
  return session;
}

function sessionOf(id) {
  const session = sessions.get(id);
  if (!session) throw new Refusal(404, "session_not_found", `no session ${id}`);
  return session;
}

function publish(session, type, turnId, payload) {
  session.seq++;
  const data = JSON.stringify({ type, sessionId: session.record.id, turnId, timestamp: now(), payload });
  for (const response of session.listeners)
    response.write(`id: ${epoch}:${session.seq}\nevent: ${type}\ndata: ${data}\n\n`);
}

function write(session, pluginId, namespace, key, value) {
  const name = `${pluginId}/${namespace}`;
  const records = session.data.get(name) ?? new Map();
  records.set(key, { key, value, version: (records.get(key)?.version ?? 0) + 1, createdAt: now(), updatedAt: now() });
  session.data.set(name, records);
  return { pluginId, change: { namespace, key, value, operation: "set" } };
}

/** What one turn runs: [runtime, stage, layer, milliseconds, options]. */
function script(kind) {
  if (kind === "start_session") return [["world-init/prepare", "setup", 0, 240]];
  if (kind === "execute_command") return [["dice-check/roll", "command", 0, 30]];
  return [
    ["dice-check/pool", "pre-turn", 0, 9],
    ["weather/observe", "pre-turn", 0, 31],
    ["tension/gauge", "pre-turn", 1, 14],
    ["narrator/story", "narrative", 0, 0, { story: true }],
    ["dice-check/record", "post-turn", 0, 24],
    ["quest-log/review", "post-turn", 0, 720],
    ["weather/forecast", "post-turn", 0, 80],
    ["weather/diary", "post-turn", 1, 46],
    ["rumours/spread", "post-turn", 1, 0, { skip: "no rumour was heard" }],
    ["continuity/check", "audit", 0, 120],
  ];
}

async function runTurn(session, action, send, aborted) {
  const { record } = session;
  const turnId = `turn-${(++serial).toString(16).padStart(6, "0")}`;
  const startedAt = performance.now();
  const micros = () => Math.round((performance.now() - startedAt) * 1000);
  const steps = script(action.type);
  const runtimes = [];
  const events = [];
  const changes = [];
  const content = action.payload.content ?? action.payload.command;
  const opening = action.type === "start_session";
  if (opening) steps.push(["narrator/story", "narrative", 0, 0, { story: true }]);
  const told = session.messages.filter((message) => message.role === "assistant").length;
  const texts = passages[record.locale.startsWith("zh") ? "zh" : "en"];
  const text = texts[told % texts.length];
  const fails = /\bfail\b/.test(content ?? "");
  let stored;

  const emit = (topic, pluginId, depth, data = {}) => {
    events.push({ topic, data, pluginId, depth });
    send("event.emitted", turnId, { topic, data, pluginId, depth });
  };

  send("execution.started", turnId, { runtimeCount: steps.length });
  publish(session, "execution.started", turnId, { runtimeCount: steps.length });

  const layers = new Map();
  for (const step of steps) {
    const key = `${step[1]}#${step[2]}`;
    layers.set(key, [...(layers.get(key) ?? []), step]);
  }
  for (const layer of layers.values()) {
    await Promise.all(
      layer.map(async ([runtimeId, stage, at, ms, options = {}]) => {
        const pluginId = runtimeId.split("/")[0];
        const base = {
          runtimeId,
          pluginId,
          turnId,
          runId: `${turnId}:${runtimeId}`,
          label: runtimeId,
          stage,
          layer: at,
        };
        const row = {
          runtimeId,
          pluginId,
          stage,
          layer: at,
          status: "completed",
          startedMicros: micros(),
          durationMicros: 0,
        };
        runtimes.push(row);
        if (options.skip) {
          row.status = "skipped";
          row.reason = options.skip;
          send("runtime.skipped", turnId, { ...base, status: "skipped", reason: options.skip });
          return;
        }
        send("runtime.started", turnId, base);
        if (options.story) {
          for (const piece of text.match(/[\s\S]{1,7}/g)) {
            if (aborted()) break;
            send("narrative.delta", turnId, { runtimeId, pluginId, kind: "text", delta: piece });
            await pause(28);
            if (fails) break;
          }
        } else {
          await pause(ms);
        }
        row.durationMicros = Math.max(90, micros() - row.startedMicros);
        const durationMs = row.durationMicros / 1000;
        if (options.story && fails) {
          row.status = "failed";
          row.error = { code: "model-unreachable", message: "the model did not answer" };
          send("runtime.failed", turnId, { ...base, status: "failed", durationMs, error: row.error });
          return;
        }
        if (options.story && !aborted()) {
          stored = {
            id: `message-${++serial}`,
            turnId,
            role: "assistant",
            content: text,
            createdAt: now(),
            sourceType: "runtime",
            sourcePluginId: pluginId,
            sourceRuntimeId: runtimeId,
          };
          send("narrative.completed", turnId, {
            content: text,
            kind: "story",
            messageId: stored.id,
            runtimeId,
            pluginId,
          });
        }
        if (runtimeId === "weather/forecast") emit("weather.changed", pluginId, 1, { sky: "fog" });
        if (runtimeId === "weather/diary") emit("diary.written", pluginId, 2);
        if (runtimeId === "quest-log/review") emit("quest.noted", pluginId, 1, { quest: "ninth-lamp" });
        if (runtimeId === "dice-check/roll") emit("dice.rolled", pluginId, 1);
        send("runtime.completed", turnId, { ...base, status: "completed", durationMs });
      }),
    );
    if (aborted() || runtimes.some((row) => row.status === "failed")) break;
  }

  const failed = runtimes.find((row) => row.status === "failed");
  const committed = !failed && !aborted();
  if (committed) {
    if (content !== undefined)
      session.messages.push({
        id: `message-${++serial}`,
        turnId,
        role: "user",
        content,
        createdAt: now(),
        sourceType: "player",
      });
    if (stored) session.messages.push(stored);
    if (opening) {
      record.phase = "playing";
      changes.push(
        write(session, "quest-log", "quests", "ninth-lamp", {
          title: "The ninth lamp",
          text: "Find out who put it out, and **why the boats still come home**.",
          status: "open",
          color: "amber",
          tags: ["Wren", "harbour"],
          steps: 4,
          done: 1,
          fresh: true,
        }),
        write(session, "weather", "sky", "now", {
          title: "Fog on its way",
          text: "Visibility falls before midnight.",
          wind: 3.4,
          fog: 0.35,
          tide: "low",
        }),
        write(session, "dice-check", "rolls", "luck", { value: 14 }),
      );
    } else if (action.type === "send_message") {
      record.completedPlayerTurns++;
      const n = record.completedPlayerTurns;
      changes.push(
        write(session, "quest-log", "quests", "brass-key", {
          title: "A key wrapped in tomorrow",
          text: "It was lying on the sill of the lamp room. One hour on the tide table is underlined.",
          status: "open",
          color: "cyan",
          tags: ["lamp room"],
          fresh: n === 1,
        }),
        write(session, "quest-log", "quests", "ninth-lamp", {
          title: "The ninth lamp",
          text: "It did not fail. **Somebody put it out.**",
          status: "open",
          color: "amber",
          tags: ["Wren", "harbour"],
          steps: 4,
          done: Math.min(4, 1 + n),
        }),
        write(session, "weather", "sky", "diary", {
          lines: ["*Evening.* The fog asked nobody.", "A bell where there is no buoy."],
        }),
        write(session, "dice-check", "rolls", "history", {
          list: [{ what: "Climb the stair", result: "success", roll: 14, against: 12 }],
        }),
      );
    } else {
      changes.push(write(session, "dice-check", "rolls", "luck", { value: 1 + Math.floor(Math.random() * 20) }));
    }
    record.updatedAt = now();
  }
  for (const { pluginId, change } of changes) {
    send("plugin-data.changed", turnId, { pluginId, changes: [change] });
    publish(session, "plugin-data.changed", turnId, { pluginId, changes: [change] });
  }
  session.turns.push({
    turnId,
    origin: opening ? "setup" : action.type === "execute_command" ? "command" : "player",
    committed,
    ...(action.type === "send_message" ? { logicalTurn: record.completedPlayerTurns } : {}),
    createdAt: now(),
    durationMicros: micros(),
    runtimes,
    events,
  });
  const error = failed ? failed.error : undefined;
  if (error) send("error.occurred", turnId, error);
  const end = {
    committed,
    durationMs: micros() / 1000,
    runtimeCount: runtimes.length,
    ...(error ? { error } : {}),
    ...(aborted() ? { abortReason: "player" } : {}),
  };
  send("execution.completed", turnId, end);
  publish(session, "execution.completed", turnId, end);
}

async function actions(request, response) {
  const action = await readBody(request);
  if (!["send_message", "start_session", "execute_command"].includes(action.type)) {
    throw new Refusal(400, "invalid_action_request", `unknown action ${action.type}`);
  }
  const session = sessionOf(action.sessionId);
  if (session.running) throw new Refusal(409, "session_busy", "a turn is running");
  const running = { status: "running", aborted: false };
  session.running = running;
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
  let seq = 0;
  const send = (type, turnId, payload) => {
    const frame = {
      type,
      requestId: action.requestId,
      traceId: turnId,
      sessionId: session.record.id,
      turnId,
      seq: seq++,
      timestamp: now(),
      payload,
    };
    response.write(`data: ${JSON.stringify(frame)}\n\n`);
  };
  try {
    await runTurn(session, action, send, () => running.aborted);
  } finally {
    session.running = undefined;
    response.end();
  }
}

function eventStream(url, response) {
  const session = sessionOf(url.searchParams.get("sessionId"));
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
  response.write(
    `event: system.connected\ndata: ${JSON.stringify({ payload: { cursor: `${epoch}:${session.seq}` } })}\n\n`,
  );
  session.listeners.add(response);
  response.on("close", () => session.listeners.delete(response));
}

async function readBody(request) {
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > BODY_LIMIT) throw new Refusal(413, "body_too_large", "body over 1 MiB");
    chunks.push(chunk);
  }
  try {
    const value = JSON.parse(Buffer.concat(chunks).toString() || "{}");
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Told below.
  }
  throw new Refusal(400, "invalid_json", "the body is not a JSON object");
}

function json(response, value, status = 200) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(value));
}

async function route(request, response) {
  const url = new URL(request.url, "http://mock");
  const path = url.pathname.split("/").filter(Boolean).map(decodeURIComponent);
  if (path[0] !== "api") return file(url.pathname, response);
  const [, area, id, part, pluginId, namespace] = path;
  const is = (method, ...shape) =>
    request.method === method &&
    path.length === shape.length + 1 &&
    shape.every((word, at) => word === "*" || word === path[at + 1]);

  if (is("GET", "health")) return json(response, { status: "ok", version: "0.1.0-mock", bootId: epoch });
  if (is("GET", "worlds")) return json(response, { items: worlds.map(({ lore: _, ...world }) => world) });
  if (is("GET", "worlds", "*")) {
    const world = worlds.find((entry) => entry.id === id);
    if (!world) throw new Refusal(404, "world_not_found", `no world ${id}`);
    return json(response, world);
  }
  if (is("GET", "plugins")) return json(response, { items: plugins });
  if (is("GET", "sessions")) return json(response, { items: [...sessions.values()].map((session) => session.record) });
  if (is("POST", "sessions")) return json(response, newSession(await readBody(request)).record, 201);
  if (is("GET", "ui-specs")) {
    const active = new Set(sessionOf(url.searchParams.get("sessionId")).record.activePlugins);
    return json(response, { ...specs, right: specs.right.filter((entry) => active.has(entry.pluginId)) });
  }
  if (is("GET", "events", "stream")) return eventStream(url, response);
  if (is("POST", "actions")) return actions(request, response);
  if (area === "sessions" && id !== undefined) {
    const session = sessionOf(id);
    if (is("GET", "sessions", "*")) return json(response, session.record);
    if (is("DELETE", "sessions", "*")) {
      sessions.delete(id);
      return json(response, { ok: true });
    }
    if (is("GET", "sessions", "*", "execution")) return json(response, session.running ?? { status: "idle" });
    if (is("GET", "sessions", "*", "messages")) return json(response, { items: session.messages });
    if (is("GET", "sessions", "*", "turns")) return json(response, { items: session.turns });
    if (is("GET", "sessions", "*", "plugins")) {
      const active = new Set(session.record.activePlugins);
      return json(response, {
        commands: commands.filter((command) => active.has(command.pluginId)),
        items: plugins.map((entry) => ({ ...entry, active: active.has(entry.id) })),
      });
    }
    if (part === "plugin-data" && request.method === "GET") {
      return json(response, { items: [...(session.data.get(`${pluginId}/${namespace}`)?.values() ?? [])] });
    }
    if (is("POST", "sessions", "*", "abort")) {
      if (!session.running) throw new Refusal(409, "no_running_turn", "no turn is running");
      session.running.aborted = true;
      return json(response, { ok: true });
    }
  }
  throw new Refusal(404, "not_found", `no route ${request.method} ${url.pathname}`);
}

const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};

async function file(pathname, response) {
  const name = normalize(pathname === "/" ? "/index.html" : pathname);
  try {
    const content = await readFile(join(DIST, name));
    response.writeHead(200, {
      "content-type": TYPES[extname(name)] ?? "application/octet-stream",
      "content-security-policy": CSP,
    });
    response.end(content);
  } catch {
    throw new Refusal(404, "not_found", "no such file; run `npm run build` first");
  }
}

createServer((request, response) => {
  route(request, response).catch((error) => {
    if (response.headersSent) return response.end();
    const status = error instanceof Refusal ? error.status : 500;
    json(response, { error: error.message, code: error.code ?? "internal" }, status);
  });
}).listen(PORT, "127.0.0.1", () => console.log(`mock server on http://127.0.0.1:${PORT}`));
