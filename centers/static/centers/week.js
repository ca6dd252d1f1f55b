/* The week of a center: stretches of opening are added, removed and copied to other days. */
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  for (const week of document.querySelectorAll("[data-week]")) {
    const prefix = week.dataset.week;
    const template = week.querySelector("template");
    const total = document.querySelector(`#id_${prefix}-TOTAL_FORMS`);

    const dayOf = (number) => week.querySelector(`[data-weekday="${number}"]`);
    const shown = (day) => [...day.querySelectorAll(".week-span:not([hidden])")];
    const times = (span) => ["opens", "closes"].map((name) => span.querySelector(`[name$="-${name}"]:not([name^="initial-"])`));

    const told = (day) => {
      day.querySelector(".week-closed").hidden = shown(day).length > 0;
      for (const span of shown(day)) {
        const [, closes] = times(span);
        span.querySelector(".week-midnight").hidden = !closes.value.startsWith("00:00");
      }
    };

    const add = (day, opens = "", closes = "") => {
      const number = Number(total.value);
      total.value = number + 1;
      const copy = template.content.cloneNode(true).firstElementChild;
      for (const element of copy.querySelectorAll("[name], [id]")) {
        for (const attribute of ["name", "id"]) {
          const value = element.getAttribute(attribute);
          if (value) element.setAttribute(attribute, value.replace("__prefix__", number));
        }
      }
      copy.querySelector('[name$="-weekday"]').value = day.dataset.weekday;
      const [first, last] = times(copy);
      first.value = opens;
      last.value = closes;
      day.querySelector(".week-closed").before(copy);
      return first;
    };

    // The server takes a stretch without times for one that is gone.
    const remove = (span) => {
      for (const input of times(span)) input.value = "";
      span.hidden = true;
    };

    week.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      const day = button.closest("[data-weekday]");
      if ("weekAdd" in button.dataset) {
        add(day).focus();
      } else if ("weekRemove" in button.dataset) {
        remove(button.closest(".week-span"));
        day.querySelector("[data-week-add]")?.focus();
      } else if (button.dataset.weekCopy) {
        const stretches = shown(day).map((span) => times(span).map((input) => input.value));
        for (const number of button.dataset.weekCopy.split(",")) {
          const other = dayOf(number);
          const spans = shown(other);
          stretches.forEach(([opens, closes], index) => {
            const span = spans[index];
            if (!span) return add(other, opens, closes);
            const [first, last] = times(span);
            first.value = opens;
            last.value = closes;
          });
          spans.slice(stretches.length).forEach(remove);
          told(other);
        }
      }
      told(day);
      week.dispatchEvent(new Event("change", { bubbles: true }));
    });
    week.addEventListener("input", (event) => told(event.target.closest("[data-weekday]")));
    for (const day of week.querySelectorAll("[data-weekday]")) told(day);
  }
});
