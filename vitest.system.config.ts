import { defineConfig } from "vitest/config";
import { settings } from "./vitest.config.ts";

export default defineConfig({ test: { ...settings, include: ["test/**/*.system.test.ts"] } });
