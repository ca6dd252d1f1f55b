/* Calendars: adds a button to each <input data-calendar>, which opens the browser's own calendar.

   The field is text: browsers show their date fields in the format of their language. */
"use strict";

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
      field.dispatchEvent(new Event("change", { bubbles: true }));
    });
  };
  const attachAll = (root) => root.querySelectorAll("input[data-calendar]").forEach(attach);

  attachAll(document);
  document.addEventListener("formset:added", (event) => attachAll(event.target));
});
