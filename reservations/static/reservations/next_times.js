/* Proposes times: while those of a <form data-next-times="{ROOM: [START, END]}"> are the ones that were
   proposed, choosing another room replaces them with its own. */
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector("form[data-next-times]");
  if (!form) return;
  const field = (name) => form.elements.namedItem(name);
  const read = () => ["start_0", "start_1", "end_0", "end_1"].map((name) => field(name).value).join();
  const fill = (name, text = "T") => {
    [field(`${name}_0`).value, field(`${name}_1`).value] = text.split("T");
  };
  const times = JSON.parse(form.dataset.nextTimes);
  let proposed = read();
  field("room").addEventListener("change", () => {
    if (read() !== proposed) return;
    const [start, end] = times[field("room").value] ?? [];
    fill("start", start);
    // The end moves along with the start (keep_duration.js), and is then set.
    field("start_1").dispatchEvent(new Event("change"));
    fill("end", end);
    proposed = read();
  });
});
