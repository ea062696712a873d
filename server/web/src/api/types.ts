/** Shapes of the HTTP API as the page reads them. Every list and most fields may be missing: readers fall back, they never throw. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** Plain text, or one text a locale (`{"en": "...", "zh-CN": "..."}`). */
export type Text = string | { [locale: string]: string };

export interface Health {
  status: string;
  version: string;
  bootId: string;
}

export interface World {
  id: string;
  name: Text;
  description?: Text;
  tags?: string[];
  locale?: string;
  locales?: string[];
  defaultPluginIds?: string[];
  lore?: Text;
}

export interface UserSetting {
  key: string;
  type: string;
  label?: Text;
  description?: Text;
  default?: Json;
  min?: number;
  max?: number;
  step?: number;
  options?: { value: string; label?: Text }[];
}

export interface PluginSummary {
  id: string;
  displayName?: Text;
  description?: Text;
  kind?: string;
  source?: string;
  hostState?: string;
  error?: string;
  /** A runtime that only events start has no stage. */
  runtimes?: { id: string; stage?: string | null; type?: string }[];
  tags?: string[];
  userSettings?: UserSetting[];
  version?: string;
  active?: boolean;
}

/** Plugin settings that the player chose for a session, by plugin and key. */
export type PlayerSettings = Record<string, Record<string, unknown>>;

/** What a session is doing now. */
export interface Execution {
  status: string;
  turnId?: string;
}

export interface Session {
  id: string;
  worldId?: string;
  locale?: string;
  status?: string;
  phase?: string;
  completedPlayerTurns?: number;
  activePlugins?: string[];
  createdAt?: string | number;
  updatedAt?: string | number;
}

export interface Message {
  id: string;
  turnId?: string;
  role: "user" | "assistant" | "system";
  content: string;
  createdAt?: string | number;
  sourceType?: string;
  sourcePluginId?: string;
  sourceRuntimeId?: string;
}

export interface TurnRuntime {
  runtimeId: string;
  pluginId: string;
  stage: string;
  layer: number;
  /** Depth of the event that started it, from 1; only where an event did. */
  depth?: number | null;
  status: string;
  reason?: string;
  error?: string | { code?: string; message?: string };
  durationMicros?: number;
  startedMicros?: number;
}

export interface TurnEvent {
  topic: string;
  data?: Json;
  pluginId?: string;
  depth?: number;
}

export interface TurnRecord {
  turnId: string;
  origin?: string;
  committed?: boolean;
  logicalTurn?: number;
  createdAt?: string | number;
  durationMicros?: number;
  runtimes?: TurnRuntime[];
  events?: TurnEvent[];
}

export interface PluginDataItem {
  key: string;
  value: Json;
  version?: number;
}

export interface PluginDataChange {
  namespace: string;
  key: string;
  value?: Json;
  operation: "set" | "delete";
}

export interface Command {
  commandId: string;
  name: string;
  description?: Text;
  arguments?: unknown;
  pluginId?: string;
}

export interface UiSpecEntry {
  pluginId: string;
  specs: unknown[];
}

export interface UiSpecs {
  right: UiSpecEntry[];
  message: UiSpecEntry[];
  left: UiSpecEntry[];
  diagnostics: unknown[];
}

/** One data-only frame of the action stream. */
export interface Frame {
  type: string;
  requestId?: string;
  traceId?: string;
  sessionId?: string;
  turnId?: string;
  seq?: number;
  timestamp?: string | number;
  payload: Record<string, unknown>;
}

export type ActionType = "send_message" | "start_session" | "execute_command";

export interface ActionRequest {
  requestId: string;
  type: ActionType;
  sessionId: string;
  payload: { content: string } | { command: string } | Record<string, never>;
}
