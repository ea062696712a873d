import { readSse } from "./sse";
import type {
  ActionRequest,
  Command,
  Execution,
  Frame,
  Health,
  Message,
  PlayerSettings,
  PluginDataItem,
  PluginSummary,
  Session,
  TurnRecord,
  UiSpecs,
  World,
} from "./types";

/** A refusal by the server, or a connection that failed (`code` "network"). */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly details: unknown;

  constructor(status: number, code: string, message: string, details?: unknown) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
    this.details = details;
  }
}

/** Any thrown value as an {@link ApiError}, so that callers have one shape to show. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof DOMException && error.name === "AbortError") return new ApiError(0, "aborted", error.message);
  return new ApiError(0, "network", error instanceof Error ? error.message : String(error));
}

async function refusal(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => "");
  try {
    const body = JSON.parse(text) as { error?: unknown; code?: unknown; details?: unknown; status?: unknown };
    const code = typeof body.code === "string" ? body.code : typeof body.status === "string" ? body.status : "";
    const message = typeof body.error === "string" ? body.error : response.statusText;
    return new ApiError(response.status, code || `http-${response.status}`, message, body.details);
  } catch {
    // A proxy's HTML page is no message for a player.
    return new ApiError(response.status, `http-${response.status}`, response.statusText);
  }
}

async function request(path: string, init: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(`/api${path}`, init);
  } catch (error) {
    throw toApiError(error);
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

async function json<T>(path: string, init?: RequestInit): Promise<T> {
  const response = await request(path, init);
  if (response.status === 204) return {} as T;
  try {
    return (await response.json()) as T;
  } catch (error) {
    throw new ApiError(response.status, "bad-answer", error instanceof Error ? error.message : String(error));
  }
}

function post(body: unknown, headers: Record<string, string> = {}): RequestInit {
  return { method: "POST", headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(body) };
}

async function items<T>(path: string): Promise<T[]> {
  const answer = await json<{ items?: T[] }>(path);
  return Array.isArray(answer.items) ? answer.items : [];
}

const id = encodeURIComponent;

export const api = {
  health: () => json<Health>("/health"),
  worlds: () => items<World>("/worlds"),
  world: (worldId: string) => json<World>(`/worlds/${id(worldId)}`),
  plugins: () => items<PluginSummary>("/plugins"),

  sessions: () => items<Session>("/sessions"),
  session: (sessionId: string) => json<Session>(`/sessions/${id(sessionId)}`),
  createSession: (body: { worldId?: string; locale?: string; plugins?: string[]; settings?: PlayerSettings }) =>
    json<Session>("/sessions", post(body)),
  deleteSession: (sessionId: string) => json<unknown>(`/sessions/${id(sessionId)}`, { method: "DELETE" }),

  execution: (sessionId: string) => json<Execution>(`/sessions/${id(sessionId)}/execution`),
  messages: (sessionId: string) => items<Message>(`/sessions/${id(sessionId)}/messages`),
  turns: (sessionId: string) => items<TurnRecord>(`/sessions/${id(sessionId)}/turns`),
  pluginData: (sessionId: string, pluginId: string, namespace: string) =>
    items<PluginDataItem>(`/sessions/${id(sessionId)}/plugin-data/${id(pluginId)}/${id(namespace)}`),
  sessionPlugins: (sessionId: string) =>
    json<{ commands?: Command[]; items?: PluginSummary[] }>(`/sessions/${id(sessionId)}/plugins`),
  uiSpecs: (sessionId: string) => json<Partial<UiSpecs>>(`/ui-specs?sessionId=${id(sessionId)}`),

  /** Asks the server to stop the running turn. 404 or 405: the server cannot. */
  abort: (sessionId: string) => json<unknown>(`/sessions/${id(sessionId)}/abort`, post({})),
  pluginRpc: (sessionId: string, body: Record<string, unknown>) =>
    json<{ status?: string }>(`/sessions/${id(sessionId)}/plugin-rpc`, post(body)),

  /**
   * Runs one turn and yields its frames. Returns at the end of the stream; a stream that ends before `execution.completed`
   * is for the caller to notice. Throws {@link ApiError}.
   */
  async *act(action: ActionRequest): AsyncGenerator<Frame> {
    const response = await request("/actions", post(action, { accept: "text/event-stream" }));
    const type = response.headers.get("content-type") ?? "";
    if (!type.includes("text/event-stream") || !response.body) throw await refusal(response);
    try {
      for await (const event of readSse(response.body)) {
        const frame = parseFrame(event.data);
        if (frame) yield frame;
      }
    } catch (error) {
      throw toApiError(error);
    }
  },
};

/** A frame, or nothing when the data is not one: a single bad frame must not end a turn that goes on. */
export function parseFrame(data: string): Frame | undefined {
  try {
    const value: unknown = JSON.parse(data);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    const frame = value as Partial<Frame>;
    if (typeof frame.type !== "string") return undefined;
    const payload = frame.payload;
    return { ...frame, type: frame.type, payload: typeof payload === "object" && payload !== null ? payload : {} };
  } catch {
    return undefined;
  }
}

/** An identifier for one action request. `randomUUID` exists only in secure contexts, and a page may be opened over plain HTTP. */
export function newRequestId(): string {
  if (typeof crypto.randomUUID === "function") return crypto.randomUUID();
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
