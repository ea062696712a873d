// Scripted material for the mock server: two worlds, the packages they recommend, and what a turn of theirs does.

export const worlds = [
  {
    id: "lantern-bay",
    name: "Lantern Bay",
    description: "A fishing town where the lamps must not go out, and one of them has.",
    tags: ["sea", "mystery", "slow burn"],
    locale: "en",
    locales: ["en", "zh-CN"],
    defaultPluginIds: ["world-init", "narrator", "dice-check", "quest-log", "weather"],
    lore: "# The bay\n\nNine lamps stand along the shore. **Eight of them** burn.\n\n- The keeper of the ninth is gone.\n- The boats still come home, by a light that nobody lit.\n\n> Count the lamps, not the boats.",
  },
  {
    id: "clockwork-court",
    name: "The Clockwork Court",
    description: "Judges of brass, a city that runs late, and a trial that already has its verdict.",
    tags: ["city", "intrigue"],
    locale: "en",
    locales: ["en"],
    defaultPluginIds: ["world-init", "narrator", "quest-log"],
    lore: "The great clock struck thirteen and the court is in session.",
  },
  {
    id: "nine-ridges",
    name: { en: "Nine Ridges", "zh-CN": "九岭" },
    description: {
      en: "Tea caravans, a closed pass, and a mountain that answers letters.",
      "zh-CN": "茶马古道，封闭的山口，和一座会回信的山。",
    },
    tags: ["mountains", "journey"],
    locale: "zh-CN",
    locales: ["zh-CN", "en"],
    defaultPluginIds: ["world-init", "narrator", "weather"],
    lore: { en: "The pass closed in spring.", "zh-CN": "山口在春天封了。" },
  },
];

export const plugins = [
  plugin(
    "world-init",
    "World Setup",
    "世界准备",
    "Lays out places and people before the first turn.",
    "在第一回合之前布置地点和人物。",
    [runtime("world-init/prepare", "setup", "function")],
  ),
  plugin("narrator", "Narrator", "叙述者", "Writes the story in answer to what you do.", "根据你的行动写出故事。", [
    runtime("narrator/story", "narrative", "agent"),
  ]),
  {
    ...plugin(
      "dice-check",
      "Dice Check",
      "骰子检定",
      "Keeps a pool of rolls and records the outcome. Adds the command /roll.",
      "准备骰池并记录结果，提供 /roll 命令。",
      [runtime("dice-check/pool", "pre-turn", "function"), runtime("dice-check/record", "post-turn", "function")],
    ),
    userSettings: [
      {
        key: "difficulty",
        type: "slider",
        label: { en: "Difficulty", "zh-CN": "难度" },
        default: 12,
        min: 5,
        max: 20,
        step: 1,
      },
      { key: "open", type: "toggle", label: { en: "Show rolls openly", "zh-CN": "公开掷骰" }, default: true },
    ],
  },
  plugin(
    "quest-log",
    "Quest Log",
    "任务日志",
    "Notes promises and open questions, and strikes out what is done.",
    "记下承诺和悬而未决的事，完成后划去。",
    [runtime("quest-log/review", "post-turn", "agent")],
  ),
  plugin(
    "weather",
    "Weather",
    "天气",
    "The sky follows the scene, and a diary follows the sky.",
    "天空随场景变化，日记随天空变化。",
    [runtime("weather/forecast", "post-turn", "function"), runtime("weather/diary", "post-turn", "function")],
  ),
  plugin(
    "continuity",
    "Continuity Check",
    "连贯性检查",
    "Looks for contradictions after the turn is told.",
    "在回合结束后寻找矛盾之处。",
    [runtime("continuity/check", "audit", "function")],
  ),
  {
    ...plugin("tarot", "Tarot", "塔罗", "Draws a card for each scene.", "为每个场景抽一张牌。", [
      runtime("tarot/draw", "pre-turn", "function"),
    ]),
    source: "community",
    hostState: "error",
    error: "entry.js: no such export `activate`",
  },
];

function plugin(id, en, zh, textEn, textZh, runtimes) {
  return {
    id,
    displayName: { en, "zh-CN": zh },
    description: { en: textEn, "zh-CN": textZh },
    kind: "plugin",
    source: "builtin",
    hostState: "loaded",
    runtimes,
    tags: [],
    userSettings: [],
    version: "0.1.0",
  };
}

function runtime(id, stage, type) {
  return { id, stage, type };
}

export const commands = [
  {
    commandId: "dice-check:roll",
    name: "roll",
    description: { en: "Roll a die and keep the result", "zh-CN": "掷一个骰子并记录结果" },
    arguments: [{ name: "sides", required: true }, { name: "times" }],
    pluginId: "dice-check",
  },
  {
    commandId: "quest-log:quests",
    name: "quests",
    description: { en: "Read the quest log aloud", "zh-CN": "朗读任务日志" },
    arguments: [],
    pluginId: "quest-log",
  },
];

const label = (en, zh) => ({ en, "zh-CN": zh });

export const specs = {
  right: [
    {
      pluginId: "quest-log",
      specs: [
        {
          specVersion: 1,
          id: "quests",
          label: label("Quests", "任务"),
          icon: "scroll-text",
          groupOrder: 100,
          dataSource: { namespace: "quests" },
          emptyState: {
            message: label("No quests yet. Promise somebody something.", "还没有任务。去答应某个人一件事吧。"),
          },
          view: {
            component: "Stack",
            children: [
              {
                component: "Row",
                props: { gap: "sm", align: "center" },
                children: [
                  { component: "Text", props: { content: label("In your notebook", "你的笔记本"), size: "lg" } },
                  {
                    component: "Badge",
                    props: {
                      label: { $pluralize: { $state: "/entries" }, one: "entry", other: "entries" },
                      color: "cyan",
                    },
                  },
                ],
              },
              {
                component: "EntryCard",
                repeat: { statePath: "/entries", key: "key" },
                props: {
                  title: { $item: "value.title" },
                  content: { $item: "value.text" },
                  category: { $item: "value.status" },
                  color: { $item: "value.color" },
                  tags: { $item: "value.tags" },
                  isNew: { $item: "value.fresh" },
                },
                children: [
                  {
                    component: "Progress",
                    visible: { $item: "value.steps" },
                    props: {
                      label: label("Steps", "步骤"),
                      value: { $item: "value.done" },
                      max: { $item: "value.steps" },
                    },
                  },
                  {
                    component: "Button",
                    visible: { $item: "value.status", eq: "open" },
                    props: { label: label("Ask about it", "打听这件事"), size: "compact" },
                    on: {
                      click: {
                        action: "draftMessage",
                        params: { text: { $concat: ["I ask about “", { $item: "value.title" }, "”."] } },
                      },
                    },
                  },
                ],
              },
            ],
          },
        },
      ],
    },
    {
      pluginId: "dice-check",
      specs: [
        {
          id: "rolls",
          label: label("Dice", "骰子"),
          icon: "dices",
          groupOrder: 200,
          dataSource: { namespace: "rolls" },
          view: {
            component: "Stack",
            children: [
              {
                component: "StatBar",
                props: { label: label("Luck", "运气"), value: { $state: "/luck/value" }, max: 20 },
              },
              {
                component: "EntryList",
                props: {
                  items: { $state: "/history/list" },
                  titleField: "what",
                  badgeFields: ["result"],
                  fields: [
                    { path: "roll", label: label("Rolled", "掷出") },
                    { path: "against", label: label("against", "难度") },
                  ],
                },
              },
              {
                component: "Button",
                props: { label: label("Roll a die", "掷骰子"), icon: "dices" },
                on: { click: { action: "invokeCommand", params: { command: "roll", args: "20" } } },
              },
            ],
          },
        },
      ],
    },
    {
      pluginId: "weather",
      specs: [
        {
          id: "sky",
          label: label("Weather", "天气"),
          icon: "waves",
          groupOrder: 300,
          dataSource: { namespace: "sky" },
          view: [
            {
              component: "Alert",
              props: { level: "warning", title: { $state: "/now/title" }, message: { $state: "/now/text" } },
            },
            {
              component: "Grid",
              props: { cols: 3 },
              children: [
                stat("Wind", "风", { $format: "number", value: { $state: "/now/wind" } }),
                stat("Fog", "雾", { $format: "percent", value: { $state: "/now/fog" } }),
                stat("Tide", "潮", { $state: "/now/tide" }),
              ],
            },
            {
              component: "Section",
              props: { title: label("Diary", "日记"), icon: "book-open" },
              children: [
                { component: "Prose", repeat: { statePath: "/diary/lines" }, props: { content: { $item: "" } } },
              ],
            },
            { component: "Hologram" },
          ],
        },
      ],
    },
  ],
  left: [],
  message: [],
  diagnostics: [],
};

function stat(en, zh, value) {
  return {
    component: "Card",
    props: { variant: "subtle" },
    children: [
      { component: "Text", props: { content: label(en, zh), variant: "muted", size: "xs" } },
      { component: "Text", props: { content: value, size: "lg" } },
    ],
  };
}

export const passages = {
  en: [
    "The tide had gone out further than it should. Nine lamps stand along the shore of Lantern Bay, and as you come down the hill path you count them without meaning to: one, two, and so on to eight. Where the ninth should burn there is only the shape of its tower, darker than the sky.\n\nA girl with a coil of rope over her shoulder stops beside you. “You're the one they sent for,” she says. It is not a question. “I'm *Wren*. Don't let the harbour master tell you it went out by itself.”",
    "You take the stair two steps at a time. Rust comes off the rail in flakes, and halfway up the wind finds you. **The pool gives you a fourteen**: enough to keep your feet when a tread gives way.\n\nThe lamp room is dry and very clean. Somebody has polished the great lens until it shows your face nine times over. The oil is full. The wick is new. On the sill lies a brass key, wrapped in a page torn from the tide tables – tomorrow's page, with one hour underlined.\n\n“Nobody forgot anything,” Wren says behind you. “It was put out.”",
    "The harbour master does not look up from the ledger. “Lamps fail,” he says. Then he sees the key in your hand, and his pen stops.\n\nOutside, the fog comes over the breakwater like something that has been given permission. A bell begins to ring on the water, far out, where there is no buoy.",
  ],
  zh: [
    "潮水退得比往常更远。灯湾的岸边立着九座灯塔，你沿着山路走下来，不由自主地数着：一、二……一直数到八。第九盏灯该亮的地方，只有塔身的轮廓，比天色更暗。\n\n一个肩上挎着绳圈的女孩在你身旁停下。“他们请来的人就是你吧。”她说，语气不像在问。“我叫*鹪鹩*。别听港务长说它是自己灭的。”",
    "你两步并作一步上了楼梯。扶手上的锈一片片剥落，爬到一半时风找到了你。**骰池给了你一个十四**：踏板塌陷时，足够让你站稳。\n\n灯室干燥而洁净。有人把巨大的透镜擦得锃亮，映出九张你的脸。油是满的，灯芯是新的。窗台上放着一把黄铜钥匙，包在一页撕下的潮汐表里——明天的那一页，有一个时辰被画了线。\n\n“没有人忘记什么，”鹪鹩在你身后说，“它是被熄掉的。”",
    "港务长没有从账簿上抬起头。“灯总会坏的。”他说。然后他看见你手里的钥匙，笔停住了。\n\n外面，雾漫过防波堤，像是得到了谁的准许。远处没有浮标的海面上，一口钟响了起来。",
  ],
};
