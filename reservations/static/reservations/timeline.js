/* The timeline by keyboard: arrow keys go from bar to bar, and Tab passes a board in one step.

   All of it are links and a form that work without this. */
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const choice = document.querySelector(".timeline-choice");
  if (choice) {
    const show = () => choice.requestSubmit();
    for (const box of choice.querySelectorAll("select")) {
      // Boxes that find rows by typing tell their changes through jQuery only.
      window.django?.jQuery?.(box).on("select2:select", show);
      box.addEventListener("change", show);
    }
  }

  const board = document.querySelector(".timeline");
  if (!board) return;
  const rows = [...board.querySelectorAll(".timeline-row")].map((row) => [
    ...row.querySelectorAll("a"),
  ]);
  let current = board.querySelector(".timeline-booking") ?? rows.flat()[0];
  for (const link of rows.flat()) link.tabIndex = link === current ? 0 : -1;

  const go = (link) => {
    if (!link) return;
    current.tabIndex = -1;
    current = link;
    current.tabIndex = 0;
    current.focus({ preventScroll: true });
    current.scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  board.addEventListener("focusin", (event) => {
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

  // Where the whole day is shown, begin at what matters, not at midnight.
  const now = board.querySelector(".timeline-now") ?? board.querySelector(".timeline-booking");
  if (now && board.scrollWidth > board.clientWidth) {
    board.scrollLeft = Math.max(0, now.offsetLeft - board.clientWidth / 4);
  }
});
