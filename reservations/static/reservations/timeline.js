/* The rows of a timeline: arrow keys go from item to item, and the rows refresh by themselves.

   The links and the form work without this script. Other scripts of the page send these events to
   the document: "timeline:refresh" asks for the rows at once, with the messages of what was done;
   "timeline:refreshed" follows. */
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const POLL_INTERVAL = 30_000;

  const choice = document.querySelector(".day-choice");
  if (choice) {
    const submit = () => choice.requestSubmit();
    for (const box of choice.querySelectorAll("select")) {
      // Autocomplete fields report changes through jQuery only.
      window.django?.jQuery?.(box).on("select2:select", submit);
      box.addEventListener("change", submit);
    }
  }

  const board = document.querySelector("#timeline-rows");
  if (!board) return;

  // --- Arrow keys: one item can be reached with Tab, the others from there.

  let rows = [];
  let current = null;
  const findLinks = () => {
    rows = [...board.querySelectorAll(".timeline-head, .timeline-row")]
      .map((row) => [...row.querySelectorAll("a")])
      .filter((links) => links.length);
    current = board.querySelector(".timeline-booking") ?? rows.flat()[0];
    for (const link of rows.flat()) link.tabIndex = link === current ? 0 : -1;
  };

  const go = (link) => {
    if (!link) return;
    current.tabIndex = -1;
    current = link;
    current.tabIndex = 0;
    current.focus({ preventScroll: true });
    current.scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  board.addEventListener("focusin", (event) => {
    const link = event.target.closest("a");
    if (link && link !== current) go(link);
  });

  const middle = (link) => {
    const { left, width } = link.getBoundingClientRect();
    return left + width / 2;
  };
  const nearest = (row, link) =>
    row?.reduce((best, each) =>
      Math.abs(middle(each) - middle(link)) < Math.abs(middle(best) - middle(link)) ? each : best,
    );

  board.addEventListener("keydown", (event) => {
    const row = rows.findIndex((links) => links.includes(event.target));
    if (row < 0) return;
    const links = rows[row];
    const column = links.indexOf(event.target);
    const to = {
      ArrowLeft: links[column - 1],
      ArrowRight: links[column + 1],
      ArrowUp: nearest(rows[row - 1], event.target),
      ArrowDown: nearest(rows[row + 1], event.target),
      Home: links[0],
      End: links.at(-1),
    };
    if (!(event.key in to)) return;
    event.preventDefault();
    go(to[event.key]);
  });

  // --- Refreshing: the focus and the scroll position stay.

  // The page's own may name no center and no day, and then means others later.
  const { address } = board.dataset;
  let etag = board.dataset.etag;
  const isMoving = () => board.querySelector(".timeline-ghost") !== null;

  const replaceRows = (html) => {
    const { scrollLeft = 0, scrollTop = 0 } = board.querySelector(".timeline") ?? {};
    const focused = board.contains(document.activeElement) ? document.activeElement : null;
    const href = focused?.getAttribute("href");
    board.innerHTML = html;
    findLinks();
    const timeline = board.querySelector(".timeline");
    timeline?.scrollTo({ left: scrollLeft, top: scrollTop, behavior: "instant" });
    if (focused) {
      const same = rows.flat().find((link) => link.getAttribute("href") === href);
      (same ?? timeline)?.focus({ preventScroll: true });
    }
    const messages = board.querySelector(".timeline-messages");
    if (messages) document.querySelector("#timeline-notice").replaceChildren(messages);
  };

  let isRefreshing = false; // because of something that was done, not a poll
  let latest = 0; // request; the answers of earlier ones are too old

  const refresh = async (isPoll) => {
    const request = ++latest;
    const headers = { "X-Requested-With": "fetch" };
    if (isPoll && etag) headers["If-None-Match"] = etag;
    const answer = await fetch(address, { headers, redirect: "manual" });
    // The user was signed out.
    if (answer.type === "opaqueredirect") location.reload();
    if (!answer.ok) return;
    const html = await answer.text();
    if (request !== latest || (isPoll && isMoving())) return;
    etag = answer.headers.get("ETag");
    replaceRows(html);
  };

  const poll = () => {
    if (document.hidden || isMoving() || isRefreshing) return;
    // Without a network, the next poll follows.
    refresh(true).catch(() => {});
  };
  setInterval(poll, POLL_INTERVAL);
  document.addEventListener("visibilitychange", poll);
  document.addEventListener("timeline:refresh", async () => {
    isRefreshing = true;
    await refresh(false).catch(() => {});
    isRefreshing = false;
    document.dispatchEvent(new CustomEvent("timeline:refreshed"));
  });

  findLinks();

  // If the whole day is shown, scroll to the current time or the first booking.
  const timeline = board.querySelector(".timeline");
  const now = board.querySelector(".timeline-now") ?? board.querySelector(".timeline-booking");
  if (now && timeline.scrollWidth > timeline.clientWidth) {
    timeline.scrollLeft = Math.max(0, now.offsetLeft - timeline.clientWidth / 4);
  }
});
