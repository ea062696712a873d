import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import { I18nProvider } from "../i18n";
import { COMPONENTS } from "./components";
import { View, type ViewAction } from "./View";

afterEach(cleanup);

function show(view: unknown, state: unknown = {}, options: { locked?: boolean; locale?: "en" | "zh-CN" } = {}) {
  const onAction = vi.fn<(action: ViewAction) => Promise<void>>(() => Promise.resolve());
  const tree = (nextState: unknown) => (
    <I18nProvider initial={options.locale ?? "en"}>
      <View view={view} state={nextState} locked={options.locked ?? false} onAction={onAction} />
    </I18nProvider>
  );
  const result = render(tree(state));
  return { ...result, onAction, update: (next: unknown) => result.rerender(tree(next)) };
}

describe("View", () => {
  it("draws the catalogue from data and follows new data", () => {
    const view = {
      component: "Stack",
      children: [
        { component: "StatBar", props: { label: "Lamp oil", value: { $state: "/oil" }, max: 10 } },
        {
          component: "EntryCard",
          repeat: { statePath: "/quests" },
          props: { title: { $item: "title" }, category: { $item: "status" }, tags: ["night"] },
        },
        {
          component: "EntryList",
          props: {
            items: { $state: "/log" },
            titleField: "what.name",
            descriptionFields: ["text"],
            fields: [{ path: "roll", label: "Rolled" }],
          },
        },
      ],
    };
    const state = {
      oil: 7,
      quests: [{ title: "Light the lamp", status: "open" }],
      log: { first: { what: { name: "Climb" }, text: "Up **high**", roll: 17 } },
    };
    const { update } = show(view, state);
    expect(screen.getByRole("meter", { name: "Lamp oil" }).getAttribute("aria-valuenow")).toBe("7");
    expect(screen.getByText("Light the lamp")).toBeTruthy();
    expect(screen.getByText("Climb")).toBeTruthy();
    expect(screen.getByText("high").tagName).toBe("STRONG");
    expect(screen.getByText("17")).toBeTruthy();
    update({ ...state, oil: 2, quests: [] });
    expect(screen.getByRole("meter").getAttribute("aria-valuenow")).toBe("2");
    expect(screen.queryByText("Light the lamp")).toBeNull();
  });

  it("shows lists in entries as their values, and empty ones not at all", () => {
    const { container } = show(
      {
        component: "EntryList",
        props: { items: { $state: "/quests" }, titleField: "name", descriptionFields: ["notes"], fields: [{ path: "tags", label: "Tags" }] },
      },
      { quests: [{ name: "First", notes: [], tags: [] }, { name: "Second", notes: ["Ask Venn", "Buy oil"], tags: [] }] },
    );
    expect(container.textContent).toContain("Ask Venn");
    expect(container.textContent).toContain("Buy oil");
    expect(container.textContent).not.toContain("[");
    expect(container.textContent).not.toContain("Tags");
  });

  it("shows a notice for an unknown component and draws the rest", () => {
    show([
      { component: "Hologram" },
      { component: "__proto__" },
      { component: "Text", props: { content: "still here" } },
    ]);
    expect(screen.getAllByTestId("view-unknown")).toHaveLength(2);
    expect(screen.getByText("still here")).toBeTruthy();
  });

  it("never turns data into markup", () => {
    const attack = '<img src=x onerror="alert(1)"><script>alert(2)</script>';
    const { container } = show({
      component: "Stack",
      children: ["Text", "Prose", "EntryCard", "Alert", "Badge", "Button", "Choice", "PlayerMessage"].map(
        (component) => ({
          component,
          props: { content: attack, title: attack, label: attack, message: attack, color: attack, variant: attack },
        }),
      ),
    });
    expect(container.querySelector("img, script, iframe, a")).toBeNull();
    expect(container.textContent).toContain("<script>");
    for (const element of container.querySelectorAll("*")) {
      for (const attribute of element.getAttributeNames()) expect(attribute.startsWith("on")).toBe(false);
    }
  });

  it("survives every component with props of every wrong kind", () => {
    const values = [null, 1, "x", true, [], [[]], {}, { a: { b: 1 } }, [null, { value: {} }]];
    const names = [
      "gap",
      "cols",
      "content",
      "label",
      "tags",
      "title",
      "items",
      "fields",
      "titleField",
      "descriptionFields",
    ];
    const more = [
      "badgeFields",
      "value",
      "max",
      "tabs",
      "options",
      "counts",
      "checked",
      "rows",
      "level",
      "name",
      "icon",
    ];
    const props = (value: unknown) => Object.fromEntries([...names, ...more].map((name) => [name, value]));
    for (const value of values) {
      const { unmount, container } = show(
        [...COMPONENTS.keys()].map((component) => ({ component, props: props(value) })),
      );
      expect(container.textContent).not.toContain("could not be drawn");
      unmount();
    }
  });

  it("binds inputs both ways until new data replaces the edit", () => {
    const view = [
      { component: "Input", props: { label: "Name", value: { $bindState: "/name" } } },
      { component: "Text", props: { content: { $concat: ["Hello ", { $state: "/name" }] } } },
    ];
    const { update } = show(view, { name: "Wren" });
    fireEvent.change(screen.getByLabelText("Name"), { target: { value: "Ada" } });
    expect(screen.getByText("Hello Ada")).toBeTruthy();
    update({ name: "Wren", other: 1 });
    expect(screen.getByText("Hello Ada")).toBeTruthy();
    update({ name: "Finch" });
    expect(screen.getByText("Hello Finch")).toBeTruthy();
  });

  it("switches tabs with the content that depends on them", () => {
    const view = {
      component: "Tabs",
      props: {
        value: { $bindState: "/tab" },
        tabs: [
          { value: "a", label: "Open" },
          { value: "b", label: "Done" },
        ],
      },
      children: [{ component: "Text", visible: { $state: "/tab", eq: "b" }, props: { content: "all done" } }],
    };
    show(view, { tab: "a" });
    expect(screen.queryByText("all done")).toBeNull();
    fireEvent.mouseDown(screen.getByRole("tab", { name: "Done" }), { button: 0 });
    expect(screen.getByText("all done")).toBeTruthy();
  });

  it("runs actions with the item's values, asks first when told to, and not while locked", async () => {
    const view = {
      component: "Button",
      repeat: { statePath: "/l" },
      props: { label: { $item: "n" } },
      on: { click: { action: "draftMessage", params: { text: { $concat: ["Ask ", { $item: "n" }] } } } },
    };
    const { onAction, unmount } = show(view, { l: [{ n: "Ada" }, { n: "Wren" }] });
    fireEvent.click(screen.getByText("Wren"));
    expect(onAction.mock.calls[0]?.[0]).toMatchObject({ action: "draftMessage", params: { text: "Ask Wren" } });
    await waitFor(() => expect(screen.getByText("Ada").getAttribute("aria-disabled")).toBeNull());
    unmount();

    const asking = show({
      component: "Button",
      props: { label: "Burn it" },
      on: { click: { action: "invokeCommand", params: { command: "burn" }, confirm: { message: "All of it?" } } },
    });
    fireEvent.click(screen.getByText("Burn it"));
    expect(asking.onAction).not.toHaveBeenCalled();
    expect(screen.getByText("All of it?")).toBeTruthy();
    fireEvent.click(screen.getByText("Yes, go on"));
    expect(asking.onAction).toHaveBeenCalledOnce();
    await waitFor(() => expect(screen.queryByText("All of it?")).toBeNull());
    asking.unmount();

    const locked = show(view, { l: [{ n: "Ada" }] }, { locked: true });
    fireEvent.click(screen.getByText("Ada"));
    expect(locked.onAction).not.toHaveBeenCalled();
  });

  it("says why an action failed", async () => {
    const { onAction } = show({ component: "Button", props: { label: "Go" }, on: { click: { action: "emitEvent" } } });
    onAction.mockRejectedValueOnce(new Error("not offered"));
    fireEvent.click(screen.getByText("Go"));
    await waitFor(() => expect(screen.getByRole("alert").textContent).toContain("not offered"));
  });

  it("picks the reader's language from locale maps", () => {
    show({ component: "Text", props: { content: { en: "Weather", "zh-CN": "天气" } } }, {}, { locale: "zh-CN" });
    expect(screen.getByText("天气")).toBeTruthy();
  });
});
