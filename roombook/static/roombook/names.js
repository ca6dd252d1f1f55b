/* What the widgets of Django's admin and of the theme leave out: names for screen readers, and keys
   for what can only be clicked. */
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

  // Icons are words of a font: "event" would be read out before "Reservations".
  const ICON_NAMES = { dock_to_right: "Menu", close: "Close", more_horiz: "More" };
  const isIcon = (node) => node.classList?.contains("material-symbols-outlined");
  const nameIcon = (icon) => {
    const word = icon.textContent.trim();
    const siblings = [...icon.parentElement.childNodes];
    if (icon.hasAttribute("x-on:click")) {
      icon.setAttribute("aria-label", ICON_NAMES[word] ?? word);
    } else if (siblings.some((node) => !isIcon(node) && node.textContent.trim())) {
      icon.setAttribute("aria-hidden", "true");
    } else if (word in ICON_NAMES) {
      icon.setAttribute("role", "img");
      icon.setAttribute("aria-label", ICON_NAMES[word]);
    }
  };

  // The theme's menus open by a click on elements that are no buttons.
  const CLICKABLE =
    "[x-on\\:click]:not(a[href], button, input, select, textarea, summary, label, [tabindex]," +
    " :has(a, button, input, select, textarea))";
  const makeButton = (element) => {
    if (!element.textContent.trim()) return;
    element.setAttribute("role", "button");
    element.tabIndex = 0;
    element.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      element.click();
    });
  };

  // In the order of the keys, the menu of a narrow window comes before the button that opens it.
  const goToMenu = (event) => {
    if (!event.target.closest("[x-on\\:click^='sidebarMobileOpen']")) return;
    requestAnimationFrame(() => document.querySelector("#nav-sidebar-apps a")?.focus());
  };

  // The theme has no main landmark, and landmarks of the same name.
  const nameLandmarks = () => {
    const content = document.querySelector("#main") ?? document.querySelector("#page");
    content?.setAttribute("role", "main");
    document.querySelector("#nav-sidebar-inner")?.setAttribute("aria-label", "Back office");
    const search = document.querySelector("[x-on\\:opencommand\\.window]");
    search?.setAttribute("role", "dialog");
    search?.setAttribute("aria-label", "Search");
    document.querySelectorAll(".simplebar-content-wrapper").forEach((scroller) => {
      const heading = scroller.closest("fieldset[aria-labelledby]");
      if (heading) {
        scroller.setAttribute("aria-labelledby", heading.getAttribute("aria-labelledby"));
      } else if (scroller.closest("#nav-sidebar-apps")) {
        scroller.setAttribute("aria-label", "Pages");
      }
    });
  };

  // A table that is wider than its box is scrolled with the arrow keys.
  const makeScrollable = (box) => {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  };

  const nameAll = () => {
    nameLandmarks();
    document.querySelectorAll(".backoffice-scroll").forEach(makeScrollable);
    document.querySelectorAll(".material-symbols-outlined").forEach(nameIcon);
    document.querySelectorAll(CLICKABLE).forEach(makeButton);
    document.querySelectorAll(".select2-selection").forEach(nameList);
    document.querySelectorAll("select + .select2-container").forEach(nameSelect);
    document
      .querySelector(".select2-dropdown .select2-search__field")
      ?.setAttribute("aria-label", "Search");
    // An open list is no part of the page's landmarks.
    document.querySelectorAll("body > .select2-container").forEach((list) => {
      list.setAttribute("role", "region");
      list.setAttribute("aria-label", "Choices");
    });
    document.querySelectorAll("a[style*='background-image']").forEach((picture) => {
      picture.setAttribute("aria-label", "Open the picture");
    });
    // The column of the checkboxes that delete rows has no heading.
    document.querySelectorAll("table.formset thead th").forEach((heading) => {
      if (heading.textContent.trim()) return;
      heading.insertAdjacentHTML("beforeend", '<span class="sr-only">Delete</span>');
    });
    document.querySelectorAll(".help-tooltip[aria-label]").forEach((icon) => {
      icon.setAttribute("role", "img");
    });
  };

  nameAll();
  window.addEventListener("resize", nameAll);
  document.addEventListener("click", goToMenu);
  new MutationObserver(nameAll).observe(document.body, { childList: true, subtree: true });
});
