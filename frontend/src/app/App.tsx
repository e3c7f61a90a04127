import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { Router } from "wouter";
import { useHashLocation } from "./hashLocation";
import { Problem } from "../api/client";
import { SessionProvider } from "./session";
import { Layout } from "./Layout";

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      retry: (count, error) => count < 2 && !(error instanceof Problem && error.status > 0),
      staleTime: 10_000,
      refetchOnWindowFocus: true,
    },
  },
});

/** Everything: data, session, and the page that the address names. */
export function App() {
  return (
    <QueryClientProvider client={queries}>
      <SessionProvider>
        <Router hook={useHashLocation}>
          <Layout />
        </Router>
      </SessionProvider>
    </QueryClientProvider>
  );
}
