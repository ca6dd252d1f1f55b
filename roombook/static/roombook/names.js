/* Names for screen readers that the widgets of Django's admin leave out. */
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  // A Select2 widget names itself by its value alone, which may be empty.
  const nameSelect = (container) => {
    const label = container.previousElementSibling?.labels?.[0];
    if (!label) return;
    label.id ||= `${label.htmlFor}-label`;
    const value = container.querySelector(".select2-selection__rendered");
    value?.setAttribute("aria-labelledby", label.id);
    container
      .querySelector(".select2-selection")
      .setAttribute("aria-labelledby", value?.id ? `${label.id} ${value.id}` : label.id);
    container.querySelector(".select2-search__field")?.setAttribute("aria-labelledby", label.id);
  };

  // Select2 says by aria-owns alone which list an open combobox controls.
  const nameList = (combobox) => {
    const list = combobox.getAttribute("aria-owns");
    if (list) combobox.setAttribute("aria-controls", list);
    else combobox.removeAttribute("aria-controls");
  };

  const nameAll = () => {
    document.querySelectorAll(".select2-selection").forEach(nameList);
    document.querySelectorAll("select + .select2-container").forEach(nameSelect);
    document
      .querySelector(".select2-dropdown .select2-search__field")
      ?.setAttribute("aria-label", "Search");
    document.querySelectorAll(".help-tooltip[aria-label]").forEach((icon) => {
      icon.setAttribute("role", "img");
    });
  };

  nameAll();
  new MutationObserver(nameAll).observe(document.body, { childList: true, subtree: true });
});
