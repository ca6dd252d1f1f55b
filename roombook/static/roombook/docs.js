// Shows the OpenAPI description with Swagger UI, and keeps the Token of the last sign-in.
"use strict";

const KEY = "roombook-token";
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

SwaggerUIBundle({
  dom_id: "#operations",
  url: document.getElementById("operations").dataset.url,
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
