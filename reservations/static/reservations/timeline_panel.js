/* The panel of a timeline: a click on a booking shows it there, and so does a drop its preview.

   The event "timeline:drop" of timeline_move.js brings the link of a booking, and the fields of its
   reschedule form. If the price stays the same, the change is saved at once and can be undone. */
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const board = document.querySelector("#timeline-rows");
  const panel = document.querySelector("#timeline-panel");
  if (!board || !panel) return;
  const content = panel.querySelector("div");
  const notice = document.querySelector("#timeline-notice");
  const headers = { "X-Requested-With": "fetch" };
  let address = null; // of the booking that the panel shows

  const focusBooking = () =>
    [...board.querySelectorAll("a")].find((link) => link.getAttribute("href") === address)?.focus();

  const close = () => {
    const hadFocus = panel.contains(document.activeElement);
    panel.hidden = true;
    if (hadFocus) focusBooking();
  };

  // The content of a response; null if it was a redirect, after which messages wait, or if the user
  // was signed out, which the rows show when they are loaded again.
  const load = async (url, options = {}) => {
    try {
      const answer = await fetch(url, { headers, redirect: "manual", ...options });
      if (answer.type === "opaqueredirect" || answer.status === 401) return null;
      if (answer.ok) return await answer.text();
    } catch {
      // The network is down.
    }
    return "<p>This could not be loaded. Look at the booking again before you repeat what you did.</p>";
  };

  const show = (html) => {
    content.innerHTML = html;
    content.dispatchEvent(new CustomEvent("live:added", { bubbles: true }));
    panel.hidden = false;
    panel.focus();
  };

  const refresh = () =>
    new Promise((resolve) => {
      document.addEventListener("timeline:refreshed", resolve, { once: true });
      document.dispatchEvent(new CustomEvent("timeline:refresh"));
    });

  let isSending = false;
  const submit = async (form, submitter) => {
    if (isSending) return;
    isSending = true;
    await send(form, submitter).finally(() => (isSending = false));
  };

  const send = async (form, submitter) => {
    const undo = content.querySelector("template")?.content.cloneNode(true);
    const body = new FormData(form, submitter);
    const html = await load(form.getAttribute("action"), { method: "POST", body });
    if (html !== null) return show(html);
    panel.hidden = true;
    await refresh();
    focusBooking();
    const wasDone = notice.querySelector("[data-level='success']");
    if (undo && wasDone && form.hasAttribute("data-can-be-undone")) notice.append(undo);
  };

  board.addEventListener("click", async (event) => {
    const link = event.target.closest(".timeline-booking");
    const opensTab = event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
    if (!link || opensTab || event.defaultPrevented) return;
    event.preventDefault();
    address = link.getAttribute("href");
    const html = await load(link.href);
    if (html === null) location.assign(link.href);
    else show(html);
  });

  document.addEventListener("timeline:drop", async ({ detail: { link, fields } }) => {
    address = link.getAttribute("href");
    const body = new FormData(document.querySelector("#timeline-token"));
    body.set("in_panel", "yes");
    for (const [name, value] of Object.entries(fields)) body.set(name, value);
    notice.replaceChildren();
    const html = await load(link.dataset.move, { method: "POST", body });
    if (html === null) {
      await refresh();
      return focusBooking();
    }
    content.innerHTML = html;
    const form = content.querySelector("form[data-can-be-undone]");
    if (form) return submit(form);
    show(html);
    // The rows may be older than what the preview says.
    await refresh();
  });

  for (const place of [panel, notice]) {
    place.addEventListener("submit", (event) => {
      if (event.target.getAttribute("method") !== "post") return;
      event.preventDefault();
      if ("live" in event.target.dataset) event.target.dispatchEvent(new Event("change"));
      else submit(event.target, event.submitter);
    });
  }
  panel.addEventListener("click", (event) => {
    if (!event.target.closest("[data-close]")) return;
    event.preventDefault();
    close();
  });
  panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
  });
});
