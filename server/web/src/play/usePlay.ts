import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { ApiError, api, newRequestId, toApiError } from "../api/client";
import { openEvents, type StreamEvent } from "../api/events";
import type {
  ActionRequest,
  Command,
  Frame,
  Message,
  PluginSummary,
  Session,
  TurnRecord,
  UiSpecs,
  World,
} from "../api/types";
import { applyFrame, newLiveTurn, type LiveTurn } from "./liveTurn";
import {
  applyChanges,
  dataKey,
  fromItems,
  needsRead,
  readChanges,
  usedNamespaces,
  type NamespaceRef,
  type PluginData,
} from "./pluginData";

/** One thing the player asked for, kept so that it can be tried again. */
export type Intent =
  { type: "start_session" } | { type: "send_message"; content: string } | { type: "execute_command"; command: string };

export interface TurnFailure {
  error: ApiError;
  intent: Intent | undefined;
}

/** A line of the page itself, not of the story; lasts until the page is left. */
export interface Note {
  id: number;
  /** The message that it follows; none when it comes first. */
  after: string | undefined;
  command: string;
  /** What the command answered, if it said anything. */
  answer: string | undefined;
  topics: string[];
}

const NO_SPECS: UiSpecs = { right: [], left: [], message: [], diagnostics: [] };

/** Sessions made by this page a moment ago: their first turn starts without being asked for. */
const fresh = new Set<string>();
export function markFresh(sessionId: string): void {
  fresh.add(sessionId);
}

const now = () => performance.now();

/** A session as it is played: everything loaded, the running turn, and the means to run one. */
export function usePlay(sessionId: string) {
  const [session, setSession] = useState<Session>();
  const [world, setWorld] = useState<World>();
  const [messages, setMessages] = useState<Message[]>([]);
  const [turns, setTurns] = useState<TurnRecord[]>([]);
  const [plugins, setPlugins] = useState<PluginSummary[]>([]);
  const [commands, setCommands] = useState<Command[]>();
  const [specs, setSpecs] = useState<UiSpecs>(NO_SPECS);
  const [data, setData] = useState<PluginData>(new Map());
  const [live, setLive] = useState<LiveTurn>();
  const [elsewhere, setElsewhere] = useState(false);
  const [connected, setConnected] = useState<boolean>();
  const [loaded, setLoaded] = useState(false);
  const [loadError, setLoadError] = useState<ApiError>();
  const [failure, setFailure] = useState<TurnFailure>();
  const [notes, setNotes] = useState<Note[]>([]);
  const [stopping, setStopping] = useState(false);
  const [canStop, setCanStop] = useState(true);
  const [finished, setFinished] = useState<{ committed: boolean; text: string; serial: number }>();

  const running = useRef(false);
  const ownTurns = useRef(new Set<string>());
  const specsRef = useRef(specs);
  const messagesRef = useRef(messages);
  const alive = useRef(true);
  const serial = useRef(0);

  const readNamespaces = useCallback(
    async (refs: readonly NamespaceRef[]) => {
      const read = await Promise.all(
        refs.map(async ({ pluginId, namespace }) => {
          // A namespace that does not exist yet is an empty one.
          const items = await api.pluginData(sessionId, pluginId, namespace).catch(() => []);
          return [dataKey(pluginId, namespace), fromItems(items)] as const;
        }),
      );
      if (alive.current) setData((before) => new Map([...before, ...read]));
    },
    [sessionId],
  );

  const readSpecs = useCallback(async () => {
    const answer = await api.uiSpecs(sessionId).catch((): Partial<UiSpecs> => ({}));
    if (!alive.current) return;
    const entries = (list: UiSpecs["right"] | undefined) =>
      (Array.isArray(list) ? list : []).filter(
        (entry) => typeof entry?.pluginId === "string" && Array.isArray(entry.specs),
      );
    const next: UiSpecs = {
      right: entries(answer.right),
      left: entries(answer.left),
      message: entries(answer.message),
      diagnostics: Array.isArray(answer.diagnostics) ? answer.diagnostics : [],
    };
    specsRef.current = next;
    setSpecs(next);
    await readNamespaces(usedNamespaces(next));
  }, [sessionId, readNamespaces]);

  /** Reads again what a turn changes. The live turn goes in the same step as its stored form appears. */
  const refresh = useCallback(
    async (dropLive: boolean): Promise<{ session: Session; messages: Message[] }> => {
      const [nextSession, nextMessages, nextTurns] = await Promise.all([
        api.session(sessionId),
        api.messages(sessionId),
        api.turns(sessionId).catch(() => undefined),
      ]);
      const read = { session: nextSession, messages: nextMessages };
      if (!alive.current) return read;
      setSession(nextSession);
      messagesRef.current = nextMessages;
      setMessages(nextMessages);
      if (nextTurns) setTurns(nextTurns);
      if (dropLive) setLive(undefined);
      void readNamespaces(usedNamespaces(specsRef.current));
      return read;
    },
    [sessionId, readNamespaces],
  );

  const dataChanged = useCallback(
    (payload: Record<string, unknown>) => {
      const pluginId = payload["pluginId"];
      if (typeof pluginId !== "string") return;
      const changes = readChanges(payload);
      setData((before) => applyChanges(before, pluginId, changes));
      const missing = new Set(changes.filter(needsRead).map((change) => change.namespace));
      if (missing.size > 0) void readNamespaces([...missing].map((namespace) => ({ pluginId, namespace })));
    },
    [readNamespaces],
  );

  const run = useCallback(
    async (intent: Intent) => {
      if (running.current) return;
      running.current = true;
      setFailure(undefined);
      setStopping(false);
      const requestId = newRequestId();
      const userText =
        intent.type === "send_message"
          ? intent.content
          : intent.type === "execute_command"
            ? intent.command
            : undefined;
      let turn = newLiveTurn({ requestId, userText, setup: intent.type === "start_session", now: now() });
      setLive(turn);

      // Many small frames arrive between two paints: they are drawn together.
      let painting = 0;
      const paint = () => {
        painting = 0;
        if (alive.current) setLive(turn);
      };
      const request: ActionRequest = {
        requestId,
        type: intent.type,
        sessionId,
        payload:
          intent.type === "send_message"
            ? { content: intent.content }
            : intent.type === "execute_command"
              ? { command: intent.command }
              : {},
      };
      const take = (frame: Frame) => {
        turn = applyFrame(turn, frame, now());
        if (turn.turnId) ownTurns.current.add(turn.turnId);
        if (frame.type === "plugin-data.changed") dataChanged(frame.payload);
        if (painting === 0) painting = requestAnimationFrame(paint);
      };
      let error: ApiError | undefined;
      try {
        for await (const frame of api.act(request)) take(frame);
        if (!turn.finished) error = new ApiError(0, "cut", "");
      } catch (caught) {
        error = toApiError(caught);
        if (error.code === "network" && turn.turnId) error = new ApiError(0, "cut", error.message);
      }
      cancelAnimationFrame(painting);
      running.current = false;
      if (!alive.current) return;
      if (!error && turn.error && (!turn.committed || intent.type === "execute_command"))
        error = new ApiError(0, turn.error.code, turn.error.message);
      const known = new Set(messagesRef.current.map((message) => message.id));
      const stored = await refresh(true).catch(() => undefined);
      if (!alive.current) return;
      if (!stored) setLive(undefined);
      const added = (stored?.messages ?? []).filter((message) => !known.has(message.id));
      if (error) setFailure({ error, intent: error.code === "cut" ? undefined : intent });
      if (!error && intent.type === "execute_command" && !added.some((message) => message.role !== "user")) {
        const topics = turn.events.map((event) => event.topic);
        const after = messagesRef.current.at(-1)?.id;
        setNotes((before) => [
          ...before,
          { id: before.length, after, command: intent.command, answer: turn.answer, topics },
        ]);
      }
      const told = added.filter((message) => message.role === "assistant").map((message) => message.content);
      setFinished({
        committed: !error,
        text: [...told, ...(turn.answer === undefined ? [] : [turn.answer])].join("\n"),
        serial: ++serial.current,
      });
      // Setup may have switched plugins or brought the first panels.
      if (intent.type === "start_session") void readSpecs();
    },
    [sessionId, refresh, readSpecs, dataChanged],
  );

  const stop = useCallback(async () => {
    setStopping(true);
    try {
      await api.abort(sessionId);
    } catch (caught) {
      const error = toApiError(caught);
      if (!alive.current) return;
      setStopping(false);
      if (error.status === 404 || error.status === 405 || error.status === 501) {
        setCanStop(false);
        setFailure({ error: new ApiError(error.status, "abort-unavailable", error.message), intent: undefined });
      } else if (error.status !== 409) {
        // 409: the turn ended before the request came.
        setFailure({ error, intent: undefined });
      }
    }
  }, [sessionId]);

  const load = useCallback(async () => {
    setLoadError(undefined);
    try {
      const { session: stored } = await refresh(false);
      if (!alive.current) return;
      setLoaded(true);
      if (stored.worldId)
        void api.world(stored.worldId).then(
          (found) => alive.current && setWorld(found),
          () => undefined,
        );
      void api.sessionPlugins(sessionId).then(
        (answer) => {
          if (!alive.current) return;
          setPlugins(Array.isArray(answer.items) ? answer.items : []);
          if (Array.isArray(answer.commands)) setCommands(answer.commands);
        },
        () => undefined,
      );
      void readSpecs();
      if (fresh.delete(sessionId)) void run({ type: "start_session" });
    } catch (caught) {
      if (alive.current) setLoadError(toApiError(caught));
    }
  }, [sessionId, refresh, readSpecs, run]);

  useEffect(() => {
    alive.current = true;
    void load();
    return () => {
      alive.current = false;
    };
  }, [load]);

  useEffect(() => {
    // A session that could not be loaded has no events either.
    if (!loaded) return undefined;
    let lost = false;
    // A turn may be running already: this page was loaded again in the middle of it, or another window began it. Asked
    // only when the events flow, so that the end of that turn cannot be missed.
    const checkRunning = async () => {
      const execution = await api.execution(sessionId).catch(() => undefined);
      if (!alive.current || !execution || running.current) return;
      const own = execution.turnId !== undefined && ownTurns.current.has(execution.turnId);
      setElsewhere(execution.status === "running" && !own);
    };
    const onEvent = (event: StreamEvent) => {
      const own = event.turnId !== undefined && ownTurns.current.has(event.turnId);
      if (event.type === "plugin-data.changed") {
        dataChanged(event.payload);
      } else if (event.type === "system.connected") {
        void checkRunning();
      } else if (event.type === "system.reset") {
        void refresh(false).catch(() => undefined);
      } else if (event.type === "execution.started") {
        if (!running.current && !own) setElsewhere(true);
      } else if (event.type === "execution.completed") {
        setElsewhere(false);
        if (!running.current) {
          setFailure((before) => (before?.error.code === "cut" ? undefined : before));
          void refresh(false).catch(() => undefined);
        }
      }
    };
    const onConnection = (up: boolean) => {
      setConnected(up);
      // What happened while the stream was down may be beyond its replay.
      if (up && lost && !running.current) void refresh(false).catch(() => undefined);
      lost = !up;
    };
    return openEvents(sessionId, { onEvent, onConnection });
  }, [sessionId, loaded, dataChanged, refresh]);

  return useMemo(
    () => ({
      session,
      world,
      messages,
      turns,
      plugins,
      commands,
      specs,
      data,
      live,
      elsewhere,
      connected,
      loaded,
      loadError,
      failure,
      notes,
      stopping,
      canStop,
      finished,
      run,
      stop,
      reload: load,
      dismissFailure: () => setFailure(undefined),
    }),
    [
      session,
      world,
      messages,
      turns,
      plugins,
      commands,
      specs,
      data,
      live,
      elsewhere,
      connected,
      loaded,
      loadError,
      failure,
      notes,
      stopping,
      canStop,
      finished,
      run,
      stop,
      load,
    ],
  );
}

export type Play = ReturnType<typeof usePlay>;
