// Shows the OpenAPI description with Swagger UI, and keeps the Token of the last sign-in.
"use strict";

const KEY = "roombook-token";
const api = document.getElementById("api");
const placeholder = document.getElementById("token").dataset.placeholder;

// The Token is kept as long as this tab is open.
function keep(token) {
  if (token) sessionStorage.setItem(KEY, token);
  else sessionStorage.removeItem(KEY);
  document.getElementById("signed-out").hidden = Boolean(token);
  document.getElementById("signed-in").hidden = !token;
  document.getElementById("token-value").textContent = token ? `${token.slice(0, 8)}…` : "";
}

keep(sessionStorage.getItem(KEY));
document.getElementById("forget").addEventListener("click", () => keep(null));

// Swagger UI leaves out what screen readers and keyboards need.
function complete() {
  for (const field of api.querySelectorAll("select, textarea")) {
    const parameter = field.closest("[data-param-name]")?.dataset.paramName;
    const name = parameter ?? (field.tagName === "TEXTAREA" ? "Request body" : "Example");
    if (!field.labels.length && !field.ariaLabel) field.ariaLabel = name;
  }
  for (const heading of api.querySelectorAll("h3, h4, h5")) {
    heading.ariaLevel ??= String(heading.tagName[1] - 1);
  }
  for (const description of api.querySelectorAll(".information-container")) {
    Object.assign(description, { role: "region", ariaLabel: "Description" });
  }
  // The button, in which it is, opens the operation and changes the address of the page too.
  for (const link of api.querySelectorAll("button a")) link.removeAttribute("href");
  for (const code of api.querySelectorAll("pre.microlight")) code.tabIndex = 0;
}
new MutationObserver(complete).observe(api, { childList: true, subtree: true });

SwaggerUIBundle({
  dom_id: "#api",
  url: api.dataset.url,
  deepLinking: true,
  displayRequestDuration: true,
  tryItOutEnabled: true,
  defaultModelsExpandDepth: 0,
  validatorUrl: "none",
  requestInterceptor(request) {
    const token = sessionStorage.getItem(KEY);
    if (token && typeof request.body === "string") {
      request.body = request.body.replace(placeholder, token);
    }
    return request;
  },
  responseInterceptor(response) {
    const { pathname } = new URL(response.url, location);
    // In JSON, CSV and JSONP alike.
    const token = /\b[0-9a-f]{64}\b/.exec(response.text);
    if (response.ok && pathname.startsWith("/api/sign-in") && token) keep(token[0]);
    if (response.ok && pathname.startsWith("/api/sign-out")) keep(null);
    return response;
  },
});
