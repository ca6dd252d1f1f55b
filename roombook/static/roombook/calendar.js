/* Calendars: adds a button to each <input data-calendar>, which opens the browser's own calendar.

   The field is text: browsers show their date fields in the format of their language. What was typed
   is shown as the service reads it (roombook/dates.py), before other scripts see the change. */
"use strict";

const readDay = (text, format) => {
  const names = [];
  const pattern = format.replaceAll(".", "\\.").replace(/%(\w)/g, (_, name) => {
    names.push(name);
    return name === "Y" ? "(?:20)?(\\d\\d)" : "(\\d{1,2})";
  });
  const match = text.trim().match(new RegExp(`^${pattern}$`));
  if (!match) return text;
  const part = Object.fromEntries(names.map((name, i) => [name, match[i + 1].padStart(2, "0")]));
  return `20${part.Y}-${part.m}-${part.d}`;
};

const readTime = (text) => {
  const match = text.trim().match(/^(\d{1,2})(?:[:.]?(\d\d))?\s*(?:([ap])\.?m?\.?)?$/i);
  if (!match || (match[3] && !(match[1] >= 1 && match[1] <= 12))) return text;
  const afternoon = match[3]?.toLowerCase() === "p" ? 12 : 0;
  const hour = match[3] ? (match[1] % 12) + afternoon : match[1];
  return `${String(hour).padStart(2, "0")}:${match[2] ?? "00"}`;
};

document.addEventListener(
  "change",
  ({ target }) => {
    if (target.dataset?.calendar) target.value = readDay(target.value, target.dataset.calendar);
    if (target.matches?.(".time-input")) target.value = readTime(target.value);
  },
  true,
);

document.addEventListener("DOMContentLoaded", () => {
  const attach = (field) => {
    // The empty form of an inline is a template, which Django's script copies.
    if (field.name.includes("__prefix__") || field.disabled) return;
    const native = document.createElement("input");
    native.type = "date";
    native.tabIndex = -1;
    native.setAttribute("aria-hidden", "true");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "calendar-button material-symbols-outlined";
    button.setAttribute("aria-label", "Open the calendar");
    button.textContent = "calendar_month";
    const frame = document.createElement("span");
    frame.className = "calendar-field";
    field.replaceWith(frame);
    frame.append(field, native, button);
    button.addEventListener("click", () => {
      native.value = field.value; // anything that is not a date leaves it empty
      native.showPicker();
    });
    native.addEventListener("change", () => {
      field.value = native.value;
      for (const type of ["input", "change"]) {
        field.dispatchEvent(new Event(type, { bubbles: true }));
      }
    });
  };
  const attachAll = (root) => root.querySelectorAll("input[data-calendar]").forEach(attach);

  attachAll(document);
  document.addEventListener("formset:added", (event) => attachAll(event.target));
});
