/* Keyboard navigation of the timeline: arrow keys go from item to item, Tab leaves the timeline.

   The links and the form work without this script. */
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const choice = document.querySelector(".timeline-choice");
  if (choice) {
    const submit = () => choice.requestSubmit();
    for (const box of choice.querySelectorAll("select")) {
      // Autocomplete fields report changes through jQuery only.
      window.django?.jQuery?.(box).on("select2:select", submit);
      box.addEventListener("change", submit);
    }
  }

  const timeline = document.querySelector(".timeline");
  if (!timeline) return;
  const rows = [...timeline.querySelectorAll(".timeline-row")].map((row) => [
    ...row.querySelectorAll("a"),
  ]);
  let current = timeline.querySelector(".timeline-booking") ?? rows.flat()[0];
  for (const link of rows.flat()) link.tabIndex = link === current ? 0 : -1;

  const go = (link) => {
    if (!link) return;
    current.tabIndex = -1;
    current = link;
    current.tabIndex = 0;
    current.focus({ preventScroll: true });
    current.scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  timeline.addEventListener("focusin", (event) => {
    const link = event.target.closest(".timeline-row a");
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

  timeline.addEventListener("keydown", (event) => {
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

  // If the whole day is shown, scroll to the current time or the first booking.
  const now = timeline.querySelector(".timeline-now") ?? timeline.querySelector(".timeline-booking");
  if (now && timeline.scrollWidth > timeline.clientWidth) {
    timeline.scrollLeft = Math.max(0, now.offsetLeft - timeline.clientWidth / 4);
  }
});
