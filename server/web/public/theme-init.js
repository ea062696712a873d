// Sets the colour scheme before the first paint. Kept in step with src/app/theme.ts.
(function () {
  var stored = null;
  try {
    stored = localStorage.getItem("covel.scheme");
  } catch (_) {
    // Storage may be blocked; the system preference is used then.
  }
  var dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
  var scheme = stored === "light" || stored === "dark" ? stored : dark ? "dark" : "light";
  document.documentElement.setAttribute("data-covel-scheme", scheme);
})();
