// Chromium as tests want it: no sandbox of its own, nothing asked of the network.

import { chromium } from "playwright-core";

export const launch = (executablePath) =>
  chromium.launch({
    executablePath,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
