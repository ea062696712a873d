import { ArrowDown, Dices, Sparkles } from "lucide-react";
import {
  Fragment,
  memo,
  useCallback,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
  type ReactNode,
} from "react";
import type { Message } from "../api/types";
import { useI18n } from "../i18n";
import { WorldArt } from "../setup/WorldArt";
import { Prose } from "../ui/Prose";
import type { LiveTurn } from "./liveTurn";
import type { Note, Play } from "./usePlay";

/** Pixels from the end within which the reader is taken to follow along. */
const NEAR_END = 120;

interface Props {
  play: Play;
  /** Panels that plugins put into the story. */
  blocks: ReactNode;
  banner: ReactNode;
}

export function Story({ play, blocks, banner }: Props) {
  const { t, text } = useI18n();
  const { messages, live, notes, world, session, loaded, plugins } = play;
  const scroller = useRef<HTMLDivElement>(null);
  const following = useRef(true);
  const [away, setAway] = useState(false);

  const names = useMemo(() => new Map(plugins.map((plugin) => [plugin.id, text(plugin.displayName)])), [plugins, text]);
  const sourceName = (pluginId: string | undefined) => (pluginId && names.get(pluginId)) || pluginId;

  const toEnd = useCallback((smooth: boolean) => {
    const element = scroller.current;
    element?.scrollTo?.({ top: element.scrollHeight, behavior: smooth ? "smooth" : "auto" });
  }, []);

  const onScroll = () => {
    const element = scroller.current;
    if (!element) return;
    const near = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR_END;
    following.current = near;
    setAway(!near);
  };

  useLayoutEffect(() => {
    if (following.current) toEnd(false);
  }, [messages, live, notes, banner, toEnd]);

  // What one has just written is always shown.
  const requestId = live?.requestId;
  useEffect(() => {
    if (!requestId) return;
    following.current = true;
    toEnd(false);
  }, [requestId, toEnd]);

  const notesAfter = (messageId: string | undefined) =>
    notes.filter((note) => note.after === messageId).map((note) => <PageNote key={note.id} note={note} />);
  const begun = messages.length > 0 || live !== undefined || notes.length > 0;
  return (
    <div className="story-frame">
      <div
        className="story-scroll"
        ref={scroller}
        onScroll={onScroll}
        tabIndex={0}
        role="group"
        aria-label={t("play.story")}
        data-testid="story"
      >
        {/* The story has its own language, which need not be the page's. */}
        <div className="story-column" lang={session?.locale}>
          {world && (
            <header className="story-opening">
              <WorldArt wide id={world.id} {...(world.tags ? { tags: world.tags } : {})} />
              <p className="story-title">{text(world.name) || world.id}</p>
              {text(world.description) && <p>{text(world.description)}</p>}
            </header>
          )}
          {notesAfter(undefined)}
          {messages.map((message) => (
            <Fragment key={message.id}>
              <StoryMessage message={message} source={sourceName(message.sourcePluginId)} />
              {notesAfter(message.id)}
            </Fragment>
          ))}
          {live && <Live turn={live} stored={messages} sourceName={sourceName} />}
          {loaded && !begun && session?.phase === "setup" && (
            <div className="story-empty">
              <p>{t("play.notBegun")}</p>
              <button
                type="button"
                className="button button-primary"
                onClick={() => void play.run({ type: "start_session" })}
              >
                <Sparkles aria-hidden="true" /> {t("play.begin")}
              </button>
            </div>
          )}
          {loaded && !begun && session?.phase !== "setup" && <p className="story-empty muted">{t("play.empty")}</p>}
          {blocks}
          {banner}
        </div>
      </div>
      {away && (
        <button
          type="button"
          className="button jump"
          onClick={() => {
            following.current = true;
            toEnd(true);
          }}
        >
          <ArrowDown aria-hidden="true" /> {t("play.latest")}
        </button>
      )}
    </div>
  );
}

const StoryMessage = memo(function StoryMessage({ message, source }: { message: Message; source: string | undefined }) {
  const { t } = useI18n();
  const who =
    message.role === "user"
      ? t("play.you")
      : message.role === "assistant"
        ? (source ?? t("play.narrator"))
        : (source ?? t("play.system"));
  return (
    <article
      className={`message message-${message.role === "user" || message.role === "system" ? message.role : "assistant"}`}
      data-testid="story-message"
      data-role={message.role}
    >
      <h2 className="message-who">{who}</h2>
      <Prose text={message.content} />
    </article>
  );
});

function PageNote({ note }: { note: Note }) {
  const { t } = useI18n();
  return (
    <div className="message message-system" data-role="note">
      <p className="note-line">
        <Dices aria-hidden="true" />
        {note.answer === undefined ? (
          t("play.commandDone", { command: note.command })
        ) : (
          <>
            <code>{note.command}</code> <span className="note-answer">{note.answer}</span>
          </>
        )}
        {note.topics.map((topic, index) => (
          <span key={index} className="event-chip">
            {topic}
          </span>
        ))}
      </p>
    </div>
  );
}

interface LiveProps {
  turn: LiveTurn;
  stored: Message[];
  sourceName(pluginId: string | undefined): string | undefined;
}

function Live({ turn, stored, sourceName }: LiveProps) {
  const { t } = useI18n();
  // The server may store the player's line before the turn ends, and the list may be read again meanwhile.
  const known =
    turn.turnId !== undefined && stored.some((message) => message.turnId === turn.turnId && message.role === "user");
  const passages = turn.passages.filter((passage) => passage.text !== "");
  return (
    <>
      {turn.userText !== undefined && !known && (
        <article className="message message-user" data-testid="story-message" data-role="user">
          <h2 className="message-who">{t("play.you")}</h2>
          <Prose text={turn.userText} />
        </article>
      )}
      {passages.map((passage) => (
        // Not a live region: pieces of words would be read out. The finished passage is announced once.
        <article
          key={passage.runtimeId}
          className={`message message-assistant${passage.complete ? "" : " message-streaming"}`}
          aria-busy={!passage.complete}
          data-testid="story-message"
          data-role="assistant"
          data-streaming={!passage.complete}
        >
          <h2 className="message-who">{sourceName(passage.pluginId) ?? t("play.narrator")}</h2>
          <Prose text={passage.text} />
        </article>
      ))}
      {!turn.finished && <Progress turn={turn} quiet={passages.length > 0} />}
    </>
  );
}

function Progress({ turn, quiet }: { turn: LiveTurn; quiet: boolean }) {
  const { t, tn } = useI18n();
  const done = turn.runtimes.filter((runtime) => runtime.status !== "running").length;
  const all = turn.runtimeCount === undefined ? undefined : Math.max(turn.runtimeCount, turn.runtimes.length);
  const runningNow = turn.runtimes
    .filter((runtime) => runtime.status === "running")
    .map((runtime) => runtime.runtimeId);
  const label = all === undefined ? tn("play.progressOpen", done) : t("play.progress", { done, all });
  return (
    <div className={`turn-progress${quiet ? " turn-progress-quiet" : ""}`} data-testid="turn-progress">
      <p className="turn-progress-head">
        <span className="pulse" aria-hidden="true" />
        <span>{t(turn.setup ? "play.setup" : "play.running")}</span>
        <span className="muted">{label}</span>
      </p>
      <div
        className="progress-track"
        role="progressbar"
        aria-label={t(turn.setup ? "play.setup" : "play.running")}
        aria-valuemin={0}
        {...(all === undefined ? {} : { "aria-valuemax": all, "aria-valuenow": done })}
        aria-valuetext={label}
      >
        <div className="progress-fill" style={{ width: `${all ? (done / all) * 100 : 0}%` }} />
      </div>
      {!quiet && runningNow.length > 0 && <p className="turn-progress-now">{runningNow.slice(0, 4).join(" · ")}</p>}
    </div>
  );
}
