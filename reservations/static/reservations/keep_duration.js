/* Keeps the duration: when the start of a <form data-keep-duration> changes, its end moves along. */
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector("form[data-keep-duration]");
  if (!form) return;
  const field = (name) => form.elements.namedItem(name);
  // Local times, read as UTC: the difference between two of them is what the clock shows.
  const read = (name) => {
    const day = field(`${name}_0`).value.trim();
    const time = field(`${name}_1`).value.trim();
    const isComplete = /^\d{4}-\d\d-\d\d$/.test(day) && /^\d\d:\d\d$/.test(time);
    return isComplete ? Date.parse(`${day}T${time}:00Z`) : NaN;
  };

  let start = read("start");
  const follow = () => {
    const moved = read("start");
    const end = read("end");
    if (Number.isNaN(moved)) return;
    if (!Number.isNaN(start) && !Number.isNaN(end)) {
      const [day, time] = new Date(end + moved - start).toISOString().split("T");
      field("end_0").value = day;
      field("end_1").value = time.slice(0, 5);
    }
    start = moved;
  };

  for (const name of ["start_0", "start_1"]) {
    field(name).addEventListener("input", follow);
    field(name).addEventListener("change", follow);
  }
});
