import * as RadioGroup from "@radix-ui/react-radio-group";
import { BookOpen, Check, Feather } from "lucide-react";
import { useCallback, useEffect, useMemo, useState } from "react";
import { navigate } from "../app/routes";
import { type ApiError, api, toApiError } from "../api/client";
import type { PlayerSettings, PluginSummary, Session, World } from "../api/types";
import { useI18n } from "../i18n";
import { markFresh } from "../play/usePlay";
import { ErrorBanner } from "../ui/Banner";
import { Dialog } from "../ui/Dialog";
import { Prose } from "../ui/Prose";
import { PluginPicker, isUsable } from "./PluginPicker";
import { SessionList } from "./SessionList";
import { WorldArt } from "./WorldArt";

/** Names of languages for the languages the host may offer; `Intl` knows the rest. */
function languageName(locale: string): string {
  try {
    return new Intl.DisplayNames([locale], { type: "language" }).of(locale) ?? locale;
  } catch {
    return locale;
  }
}

function worldLocales(world: World | undefined): string[] {
  const all = [...(world?.locales ?? []), ...(world?.locale === undefined ? [] : [world.locale])];
  return [...new Set(all)];
}

/** The language to suggest: the page's own when the world has it, else the world's. */
function suggestedLocale(world: World | undefined, ui: string): string | undefined {
  const locales = worldLocales(world);
  const language = ui.split("-")[0];
  return (
    locales.find((locale) => locale === ui) ??
    locales.find((locale) => locale.split("-")[0] === language) ??
    world?.locale ??
    locales[0]
  );
}

export function SetupView() {
  const { t, text, locale: ui } = useI18n();
  const [worlds, setWorlds] = useState<World[]>();
  const [plugins, setPlugins] = useState<PluginSummary[]>([]);
  const [sessions, setSessions] = useState<Session[]>([]);
  const [loadError, setLoadError] = useState<ApiError>();
  const [worldId, setWorldId] = useState<string>();
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [storyLocale, setStoryLocale] = useState<string>();
  const [settings, setSettings] = useState<PlayerSettings>({});
  const [starting, setStarting] = useState(false);
  const [startError, setStartError] = useState<ApiError>();
  const [about, setAbout] = useState<World>();

  const usable = useMemo(() => new Set(plugins.filter(isUsable).map((plugin) => plugin.id)), [plugins]);
  const world = worlds?.find((entry) => entry.id === worldId);
  const recommendedFor = useCallback(
    (entry: World | undefined, among: ReadonlySet<string>) =>
      new Set((entry?.defaultPluginIds ?? []).filter((id) => among.has(id))),
    [],
  );
  const recommended = useMemo(() => recommendedFor(world, usable), [recommendedFor, world, usable]);

  const load = useCallback(async () => {
    setLoadError(undefined);
    try {
      const [foundWorlds, foundPlugins, foundSessions] = await Promise.all([
        api.worlds(),
        api.plugins(),
        api.sessions(),
      ]);
      setWorlds(foundWorlds);
      setPlugins(foundPlugins);
      setSessions(foundSessions);
      const first = foundWorlds[0];
      setWorldId(first?.id);
      setChosen(recommendedFor(first, new Set(foundPlugins.filter(isUsable).map((plugin) => plugin.id))));
    } catch (error) {
      setLoadError(toApiError(error));
    }
  }, [recommendedFor]);

  useEffect(() => {
    void load();
  }, [load]);

  const chooseWorld = (id: string) => {
    setWorldId(id);
    setStoryLocale(undefined);
    setChosen(
      recommendedFor(
        worlds?.find((entry) => entry.id === id),
        usable,
      ),
    );
  };

  const locales = worldLocales(world);
  const locale = storyLocale ?? suggestedLocale(world, ui);

  const start = async () => {
    setStarting(true);
    setStartError(undefined);
    const active = plugins.filter((plugin) => chosen.has(plugin.id) && isUsable(plugin)).map((plugin) => plugin.id);
    const given = Object.fromEntries(Object.entries(settings).filter(([id]) => active.includes(id)));
    try {
      const session = await api.createSession({
        ...(worldId === undefined ? {} : { worldId }),
        ...(locale === undefined ? {} : { locale }),
        plugins: active,
        ...(Object.keys(given).length > 0 ? { settings: given } : {}),
      });
      markFresh(session.id);
      navigate({ name: "play", sessionId: session.id });
    } catch (error) {
      setStartError(toApiError(error));
      setStarting(false);
    }
  };

  if (loadError) {
    return (
      <main id="main" className="setup" tabIndex={-1}>
        <ErrorBanner error={loadError} lead={t("error.load")} onRetry={() => void load()} />
      </main>
    );
  }
  if (!worlds) {
    return (
      <main id="main" className="setup" tabIndex={-1}>
        <p className="muted" role="status">
          {t("app.loading")}
        </p>
      </main>
    );
  }

  const nothingOn = plugins.length > 0 && chosen.size === 0;
  return (
    <main id="main" className="setup" tabIndex={-1}>
      <div className="setup-main">
        <header className="setup-intro">
          <h1>{t("setup.title")}</h1>
          <p>{t("setup.lead")}</p>
        </header>

        <section aria-labelledby="setup-world">
          <h2 id="setup-world">{t("setup.world")}</h2>
          {worlds.length === 0 ? (
            <p className="muted">{t("setup.world.none")}</p>
          ) : (
            <RadioGroup.Root
              className="world-grid"
              aria-labelledby="setup-world"
              value={worldId ?? null}
              onValueChange={chooseWorld}
            >
              {worlds.map((entry) => (
                <div key={entry.id} className="world-cell">
                  <RadioGroup.Item
                    value={entry.id}
                    className="world-card"
                    aria-labelledby={`world-${entry.id}-name`}
                    aria-describedby={`world-${entry.id}-text`}
                    data-testid={`world-card-${entry.id}`}
                  >
                    <WorldArt id={entry.id} wide={worlds.length === 1} {...(entry.tags ? { tags: entry.tags } : {})} />
                    <span className="world-body">
                      <span id={`world-${entry.id}-name`} className="world-name">
                        {text(entry.name) || entry.id}
                      </span>
                      <span id={`world-${entry.id}-text`} className="world-description">
                        {text(entry.description)}
                      </span>
                      {(entry.tags?.length ?? 0) > 0 && (
                        <span className="world-tags">
                          {entry.tags?.slice(0, 5).map((tag) => (
                            <span key={tag} className="chip">
                              {tag}
                            </span>
                          ))}
                        </span>
                      )}
                    </span>
                    <span className="world-mark" aria-hidden="true">
                      <Check />
                    </span>
                  </RadioGroup.Item>
                  <button
                    type="button"
                    className="button button-ghost button-small world-more"
                    onClick={() => setAbout(entry)}
                  >
                    <BookOpen aria-hidden="true" /> {t("setup.world.more")}
                    <span className="visually-hidden">: {text(entry.name) || entry.id}</span>
                  </button>
                </div>
              ))}
            </RadioGroup.Root>
          )}
        </section>

        <section aria-labelledby="setup-plugins">
          <h2 id="setup-plugins">{t("setup.plugins")}</h2>
          <p className="muted section-hint">{t("setup.plugins.hint")}</p>
          <PluginPicker
            plugins={plugins}
            recommended={recommended}
            chosen={chosen}
            settings={settings}
            onToggle={(id, on) => {
              const next = new Set(chosen);
              if (on) next.add(id);
              else next.delete(id);
              setChosen(next);
            }}
            onReset={() => setChosen(recommended)}
            onSetting={(id, key, value) => setSettings({ ...settings, [id]: { ...settings[id], [key]: value } })}
          />
        </section>
      </div>

      <aside className="setup-side">
        <section className="start-card" aria-label={t("setup.start")}>
          {world && (
            <>
              <WorldArt id={world.id} {...(world.tags ? { tags: world.tags } : {})} />
              <p className="start-world">{text(world.name) || world.id}</p>
            </>
          )}
          {locales.length > 0 && (
            <div className="field">
              <label htmlFor="story-locale">{t("setup.language")}</label>
              <select
                id="story-locale"
                className="input"
                value={locale}
                onChange={(event) => setStoryLocale(event.target.value)}
                data-testid="story-locale"
              >
                {locales.map((entry) => (
                  <option key={entry} value={entry}>
                    {languageName(entry)}
                  </option>
                ))}
              </select>
            </div>
          )}
          {startError && (
            <ErrorBanner error={startError} onRetry={() => void start()} onDismiss={() => setStartError(undefined)} />
          )}
          {nothingOn && (
            <p className="muted" role="status">
              {t("setup.needPlugin")}
            </p>
          )}
          <button
            type="button"
            className="button button-primary button-large"
            disabled={starting || nothingOn}
            onClick={() => void start()}
            data-testid="start-session"
          >
            <Feather aria-hidden="true" /> {t(starting ? "setup.starting" : "setup.start")}
          </button>
        </section>
        <SessionList
          sessions={sessions}
          worlds={worlds}
          onDeleted={(id) => setSessions(sessions.filter((session) => session.id !== id))}
        />
      </aside>
      <AboutWorld world={about} onClose={() => setAbout(undefined)} />
    </main>
  );
}

function AboutWorld({ world, onClose }: { world: World | undefined; onClose(): void }) {
  const { t, text } = useI18n();
  const [full, setFull] = useState<World>();
  useEffect(() => {
    if (!world) return undefined;
    let alive = true;
    setFull(undefined);
    api.world(world.id).then(
      (found) => alive && setFull(found),
      () => alive && setFull(world),
    );
    return () => {
      alive = false;
    };
  }, [world]);
  return (
    <Dialog
      open={world !== undefined}
      onOpenChange={onClose}
      title={text(world?.name)}
      description={text(world?.description)}
    >
      {full ? <Prose text={text(full.lore) || t("setup.world.noLore")} /> : <p className="muted">{t("app.loading")}</p>}
    </Dialog>
  );
}
