import { useEffect, useMemo, useRef, useState } from "react";
import { useI18n } from "../i18n";
import { own } from "../view/pointer";
import type { Records } from "../view/state";
import type { ViewAction } from "../view/View";
import { connect, type Act, type Connection } from "./bridge";
import { useTheme } from "./theme";
import { checkUiState, type UiStates } from "./uiState";

/** What panels of the side may do; the stage has another list. WEB-7 */
const ACTIONS = ["invokeRuntime", "invokePluginAction", "invokeCommand", "emitEvent", "draftMessage"] as const;
const MIN_HEIGHT = 80;
const MAX_HEIGHT = 800;
const DEFAULT_HEIGHT = 280;

interface Props {
  /** Identity of the panel in this session. */
  id: string;
  label: string;
  webview: unknown;
  data: Records;
  locked: boolean;
  large: boolean;
  uiStates: UiStates;
  onAction(action: ViewAction): Promise<unknown>;
}

/** HTML of a package, in two sandboxed frames that share nothing with the page but one port. WEB-1 */
export function WebView(props: Props) {
  const html = own(props.webview, "html");
  // A changed file is another document: the whole container is made anew. WEB-2
  return typeof html === "string" ? <Frame key={html} {...props} html={html} /> : null;
}

function Frame({ id, label, webview, html, data, locked, large, uiStates, onAction }: Props & { html: string }) {
  const { locale } = useI18n();
  const theme = useTheme();
  const [uiState, setUiState] = useState<unknown>(() => uiStates.get(id) ?? null);
  const frame = useRef<HTMLIFrameElement>(null);
  const connection = useRef<Connection>(undefined);

  const state = useMemo(
    () => ({ data: Object.fromEntries(data), locale, locked, context: { surface: "panel" }, uiState, theme }),
    [data, locale, locked, uiState, theme],
  );
  // What the port's handlers see is what the last rendering saw.
  const latest = useRef({ state, locked, onAction });
  latest.current = { state, locked, onAction };

  const actions = useMemo(() => {
    const list = new Map<string, Act>();
    for (const action of ACTIONS) list.set(action, (params) => latest.current.onAction({ action, params }));
    list.set("setUiState", (params) => {
      const value = checkUiState(own(params, "value") ?? null);
      uiStates.set(id, value);
      setUiState(value);
      return { status: "ok" };
    });
    return list;
  }, [id, uiStates]);

  useEffect(() => connection.current?.show(state), [state]);
  useEffect(() => () => connection.current?.close(), []);

  const open = () => {
    connection.current?.close();
    const { port1, port2 } = new MessageChannel();
    connection.current = connect(port1, { actions, locked: () => latest.current.locked });
    frame.current?.contentWindow?.postMessage({ type: "covel:connect", document: html }, "*", [port2]);
    connection.current.show(latest.current.state);
  };

  const wanted = own(webview, "height");
  const height = Math.min(Math.max(typeof wanted === "number" ? wanted : DEFAULT_HEIGHT, MIN_HEIGHT), MAX_HEIGHT);
  return (
    <iframe
      ref={frame}
      className="webview"
      title={label}
      src="/plugin-frame.html"
      sandbox="allow-scripts"
      referrerPolicy="no-referrer"
      onLoad={open}
      style={large ? undefined : { height }}
    />
  );
}
