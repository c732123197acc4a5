import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { ApiError } from "./api/client";
import { accept, takeFromAddress } from "./api/token";
import { App } from "./app";
import { keepFocus } from "./lib/keep-focus";
import "./styles/base.css";
import "./styles/controls.css";
import "./styles/page.css";
import "./styles/overview.css";
import "./styles/phone.css";

const MOST_TRIES = 4;

const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 2_000,
      // A clear no stays no; a server that is being restarted is asked again.
      retry: (failures, error) =>
        failures < MOST_TRIES && (!(error instanceof ApiError) || error.isUnreachable || error.status >= 500),
      retryDelay: (failures) => Math.min(4_000, 400 * 2 ** failures),
      networkMode: "always",
    },
    mutations: { networkMode: "always" },
  },
});

const given = takeFromAddress();
if (given !== null) await accept(given);
// A link pasted into a tab that shows this page already loads nothing by itself.
window.addEventListener("hashchange", () => {
  if (location.hash.startsWith("#code=")) location.reload();
});

keepFocus();
createRoot(document.getElementById("root") as HTMLElement).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <App />
    </QueryClientProvider>
  </StrictMode>,
);
