// In a layer: the console's own styles win, in whatever order chunks bring them.
import "@mantine/core/styles.layer.css";
import "./app/tokens.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app/App";
import { newQueryClient } from "./app/queryClient";
import { newRouter } from "./app/router";

const container = document.getElementById("root");
if (!container) throw new Error("index.html has no element with the id root");

createRoot(container).render(
  <StrictMode>
    <App router={newRouter()} queries={newQueryClient()} />
  </StrictMode>,
);
