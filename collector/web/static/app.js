// Live updates with htmx, and the buttons that need a script. Everything else works without it.
"use strict";

let isPaused = false;

function showPauseButtons() {
  for (const button of document.querySelectorAll("[data-pause]")) {
    button.hidden = false;
    button.textContent = isPaused ? "Resume live updates" : "Pause live updates";
    button.setAttribute("aria-pressed", String(isPaused));
  }
}

function isInUse(region) {
  // A replaced region loses what somebody types, selects, has opened or has reached by the keyboard.
  const active = document.activeElement;
  const isTyping = region.contains(active) && active.matches("input, select, :focus-visible");
  const selection = document.getSelection();
  const isSelecting = selection && !selection.isCollapsed && region.contains(selection.anchorNode);
  return isTyping || isSelecting || region.querySelector("details[open]") !== null;
}

document.addEventListener("click", async (event) => {
  const pause = event.target.closest("[data-pause]");
  if (pause) {
    isPaused = !isPaused;
    showPauseButtons();
  }
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    await navigator.clipboard.writeText(new URL(copy.dataset.copy, location.href).href);
    document.querySelector("[data-copied]").textContent = "Copied";
  }
});

document.addEventListener("htmx:beforeRequest", (event) => {
  if (isPaused || document.hidden || isInUse(event.detail.elt)) event.preventDefault();
});

document.addEventListener("htmx:beforeSwap", (event) => {
  // An answer that is not this page, such as a sign-in after the token was withdrawn.
  if (!event.detail.serverResponse.includes('id="live"')) event.detail.shouldSwap = false;
});

document.addEventListener("htmx:afterSwap", showPauseButtons);

showPauseButtons();
// Browsers offer the clipboard only to pages from this machine or over TLS.
if (navigator.clipboard) {
  for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;
}
