/* Edits the opening hours of a week: adds and removes intervals, and copies a day to other days. */
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  for (const week of document.querySelectorAll("[data-week]")) {
    const prefix = week.dataset.week;
    const template = week.querySelector("template");
    const total = document.querySelector(`#id_${prefix}-TOTAL_FORMS`);

    const getDay = (number) => week.querySelector(`[data-weekday="${number}"]`);
    const getIntervals = (day) => [...day.querySelectorAll(".week-span:not([hidden])")];
    const getTimes = (interval) =>
      ["opens", "closes"].map((name) =>
        interval.querySelector(`[name$="-${name}"]:not([name^="initial-"])`),
      );

    const updateLabels = (day) => {
      day.querySelector(".week-closed").hidden = getIntervals(day).length > 0;
      for (const interval of getIntervals(day)) {
        const [opens, closes] = getTimes(interval).map((input) => input.value);
        const label = interval.querySelector(".week-midnight");
        label.textContent = closes.startsWith("00:00") ? "midnight" : "next day";
        label.hidden = !closes || (!closes.startsWith("00:00") && closes >= opens);
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
      const [first, last] = getTimes(copy);
      first.value = opens;
      last.value = closes;
      day.querySelector(".week-closed").before(copy);
      return first;
    };

    // The server deletes an interval without times.
    const remove = (interval) => {
      for (const input of getTimes(interval)) input.value = "";
      interval.hidden = true;
    };

    const copyTo = (source, target) => {
      const values = getIntervals(source).map((each) => getTimes(each).map((input) => input.value));
      const intervals = getIntervals(target);
      values.forEach(([opens, closes], index) => {
        const interval = intervals[index];
        if (!interval) return add(target, opens, closes);
        const [first, last] = getTimes(interval);
        first.value = opens;
        last.value = closes;
      });
      intervals.slice(values.length).forEach(remove);
      updateLabels(target);
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
        for (const number of button.dataset.weekCopy.split(",")) copyTo(day, getDay(number));
      }
      updateLabels(day);
      week.dispatchEvent(new Event("change", { bubbles: true }));
      // So that the theme warns of leaving the page.
      total.dispatchEvent(new Event("input"));
    });
    week.addEventListener("input", (event) => updateLabels(event.target.closest("[data-weekday]")));
    for (const day of week.querySelectorAll("[data-weekday]")) updateLabels(day);
  }
});
