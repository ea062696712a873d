(() => {
  const root = document.documentElement;
  const language = document.getElementById("language");
  root.lang = /^zh/i.test(navigator.language) ? "zh" : "en";
  language.hidden = false;
  language.addEventListener("click", () => { root.lang = root.lang === "zh" ? "en" : "zh"; });

  const details = document.getElementById("details");
  const bars = [...document.querySelectorAll(".bar")];
  const rows = bars.map((bar) => bar.closest(".row"));
  let held = 0;
  const show = (at) => {
    held = at;
    const waits = new Set(bars[at].dataset.waits.split(" ").filter(Boolean).map(Number));
    rows.forEach((row, other) => {
      row.classList.toggle("chosen", other === at);
      row.classList.toggle("waited", waits.has(other));
    });
    bars.forEach((bar, other) => { bar.tabIndex = other === at ? 0 : -1; });
    details.replaceChildren(rows[at].querySelector("template").content.cloneNode(true));
  };
  const steps = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 };
  bars.forEach((bar, at) => {
    rows[at].addEventListener("pointerenter", () => show(at));
    bar.addEventListener("focus", () => show(at));
    bar.addEventListener("keydown", (event) => {
      const to = event.key === "Home" ? 0 : event.key === "End" ? bars.length - 1 : at + (steps[event.key] ?? 0);
      if (to === at || !bars[to]) return;
      event.preventDefault();
      bars[to].focus();
    });
  });
  if (bars.length > 0) show(held);
})();
