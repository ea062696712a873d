import { ChevronRight, Trash2 } from "lucide-react";
import { useState } from "react";
import { routeHref } from "../app/routes";
import { type ApiError, api, toApiError } from "../api/client";
import type { Session, World } from "../api/types";
import { useI18n } from "../i18n";
import { ErrorBanner } from "../ui/Banner";
import { Dialog } from "../ui/Dialog";
import { asDate } from "../ui/time";

interface Props {
  sessions: Session[];
  worlds: World[];
  onDeleted(sessionId: string): void;
}

/** Sessions shown before the list is cut; the newest come first. */
const MAX_SHOWN = 50;

export function SessionList({ sessions, worlds, onDeleted }: Props) {
  const { t, tn, text, locale } = useI18n();
  const [doomed, setDoomed] = useState<Session>();
  const [error, setError] = useState<ApiError>();

  const name = (session: Session) =>
    text(worlds.find((world) => world.id === session.worldId)?.name) || session.worldId || session.id;
  const stamp = (session: Session) => asDate(session.updatedAt ?? session.createdAt)?.getTime() ?? 0;
  const sorted = [...sessions].sort((a, b) => stamp(b) - stamp(a)).slice(0, MAX_SHOWN);
  const format = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });

  const remove = async () => {
    if (!doomed) return;
    try {
      await api.deleteSession(doomed.id);
      onDeleted(doomed.id);
      setError(undefined);
    } catch (caught) {
      setError(toApiError(caught));
    }
    setDoomed(undefined);
  };

  return (
    <section className="sessions" aria-labelledby="sessions-title">
      <h2 id="sessions-title">{t("sessions.title")}</h2>
      {error && <ErrorBanner error={error} onDismiss={() => setError(undefined)} />}
      {sorted.length === 0 ? (
        <p className="muted">{t("sessions.none")}</p>
      ) : (
        <ul className="session-list">
          {sorted.map((session) => {
            const date = asDate(session.updatedAt ?? session.createdAt);
            return (
              <li key={session.id} className="session">
                <a
                  className="session-link"
                  href={routeHref({ name: "play", sessionId: session.id })}
                  data-testid={`session-${session.id}`}
                >
                  <span className="session-name">
                    <span className="visually-hidden">{t("sessions.resume")} </span>
                    {name(session)}
                  </span>
                  <span className="session-facts">
                    {session.phase === "setup"
                      ? t("sessions.setup")
                      : tn("sessions.turns", session.completedPlayerTurns ?? 0)}
                    {date && <> · {format.format(date)}</>}
                  </span>
                  <ChevronRight className="session-arrow" aria-hidden="true" />
                </a>
                <button
                  type="button"
                  className="icon-button"
                  aria-label={t("sessions.delete", { name: name(session) })}
                  onClick={() => setDoomed(session)}
                >
                  <Trash2 aria-hidden="true" />
                </button>
              </li>
            );
          })}
        </ul>
      )}
      <Dialog
        open={doomed !== undefined}
        onOpenChange={() => setDoomed(undefined)}
        title={t("sessions.delete.title")}
        description={doomed && t("sessions.delete.text", { name: name(doomed) })}
        size="small"
        footer={
          <>
            <button type="button" className="button" onClick={() => setDoomed(undefined)}>
              {t("app.cancel")}
            </button>
            <button type="button" className="button button-danger" onClick={() => void remove()}>
              {t("sessions.delete.confirm")}
            </button>
          </>
        }
      />
    </section>
  );
}
