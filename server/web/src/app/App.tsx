import * as Tooltip from "@radix-ui/react-tooltip";
import { ArrowLeft, Languages, Moon, Sun } from "lucide-react";
import { useEffect, useRef, useState, type ReactNode } from "react";
import { api } from "../api/client";
import { useI18n } from "../i18n";
import { PlayView } from "../play/PlayView";
import { SetupView } from "../setup/SetupView";
import { ErrorBoundary } from "../ui/ErrorBoundary";
import { parseRoute, useHash } from "./routes";
import { useScheme } from "./theme";

export function App() {
  const { t } = useI18n();
  const hash = useHash();
  const route = parseRoute(hash);
  const first = useRef(true);

  // A new place starts where its content starts, for readers who cannot see that it changed.
  const place = route.name === "play" ? route.sessionId : route.name;
  useEffect(() => {
    if (first.current) {
      first.current = false;
      return;
    }
    document.getElementById("main")?.focus({ preventScroll: true });
    window.scrollTo?.(0, 0);
  }, [place]);

  return (
    <Tooltip.Provider delayDuration={400}>
      <a
        className="skip-link"
        href="#main"
        onClick={(event) => {
          // The fragment belongs to the routes.
          event.preventDefault();
          document.getElementById("main")?.focus();
        }}
      >
        {t("app.skip")}
      </a>
      <Header inStory={route.name === "play"} />
      <ErrorBoundary key={place} fallback={<Crash />}>
        {route.name === "play" ? <PlayView sessionId={route.sessionId} /> : <SetupView />}
      </ErrorBoundary>
    </Tooltip.Provider>
  );
}

function Header({ inStory }: { inStory: boolean }) {
  const { t, locale, setLocale } = useI18n();
  const [scheme, toggleScheme] = useScheme();
  const [version, setVersion] = useState<string>();
  useEffect(() => {
    api.health().then(
      (health) => setVersion(health.version),
      () => undefined,
    );
  }, []);
  return (
    <header className="app-header">
      <a
        className="brand"
        href="#/"
        aria-label={`Covel, ${t("app.home")}`}
        {...(version ? { title: t("app.version", { version }) } : {})}
      >
        <svg viewBox="0 0 32 32" aria-hidden="true">
          <path
            d="M22.5 9.4A9.4 9.4 0 1 0 22.5 22.6"
            fill="none"
            stroke="currentColor"
            strokeWidth="3.4"
            strokeLinecap="round"
          />
          <circle cx="24" cy="16" r="3" className="brand-dot" />
        </svg>
        <span>Covel</span>
      </a>
      {inStory ? (
        <a className="button button-ghost button-small" href="#/">
          <ArrowLeft aria-hidden="true" /> {t("app.home")}
        </a>
      ) : (
        <span className="tagline">{t("app.tagline")}</span>
      )}
      <span className="spacer" />
      <Hint label={t("app.language")}>
        <button
          type="button"
          className="icon-button"
          aria-label={t("app.language")}
          lang={locale === "en" ? "zh-CN" : "en"}
          onClick={() => setLocale(locale === "en" ? "zh-CN" : "en")}
          data-testid="language-toggle"
        >
          <Languages aria-hidden="true" />
        </button>
      </Hint>
      <Hint label={t(scheme === "dark" ? "app.theme.toLight" : "app.theme.toDark")}>
        <button
          type="button"
          className="icon-button"
          aria-label={t(scheme === "dark" ? "app.theme.toLight" : "app.theme.toDark")}
          onClick={toggleScheme}
          data-testid="theme-toggle"
        >
          {scheme === "dark" ? <Sun aria-hidden="true" /> : <Moon aria-hidden="true" />}
        </button>
      </Hint>
    </header>
  );
}

/** A small label for a button that shows only a sign. */
function Hint({ label, children }: { label: string; children: ReactNode }) {
  return (
    <Tooltip.Root>
      <Tooltip.Trigger asChild>{children}</Tooltip.Trigger>
      <Tooltip.Portal>
        <Tooltip.Content className="tooltip" sideOffset={6} collisionPadding={8}>
          {label}
        </Tooltip.Content>
      </Tooltip.Portal>
    </Tooltip.Root>
  );
}

function Crash() {
  const { t } = useI18n();
  return (
    <main id="main" className="play-error" tabIndex={-1}>
      <h1>{t("app.crash.title")}</h1>
      <p>{t("app.crash.text")}</p>
      <button type="button" className="button button-primary" onClick={() => window.location.reload()}>
        {t("app.reload")}
      </button>
    </main>
  );
}
