import { defineConfig } from "vitest/config";

/** Tests of `npm test` and `npm run test:system` that have a long form. */
const LONG_TESTS = [
  "test/{config,metrics,policy,scheduling}/**/*.test.ts",
  "test/api-client/rate-limits/second-client.system.test.ts",
  "test/api-client/pagination/list-walk.test.ts",
  "test/journal/{journal,retention}.system.test.ts",
  "test/rate-limit/saturation/action-burst.system.test.ts",
  "test/rate-limit/arbitrary-headers.test.ts",
  "test/rate-limit/external-usage/usage-of-limit.test.ts",
  "test/rate-limit/saturation/ledger-days.system.test.ts",
  "test/rate-limit/saturation/learned-limit-over-hours.system.test.ts",
  "test/rate-limit/month-of-polling.system.test.ts",
  "test/collectors/collector-manager.test.ts",
  "test/collectors/service-failures/gateway.system.test.ts",
  "test/collectors/lists/inexact-lists.system.test.ts",
  "test/collectors/details/detail-failures.system.test.ts",
  "test/collectors/details/detail-pace.system.test.ts",
  "test/collectors/service-failures/rejected-routes.system.test.ts",
  "test/collectors/start.test.ts",
  "test/integration/remediation/process-death.system.test.ts",
  "test/integration/service/gateway.system.test.ts",
  "test/integration/high-availability/lost-leadership.system.test.ts",
  "test/daemon/role-switch.system.test.ts",
  "test/remediation/evaluation/limits/frozen-nodes.system.test.ts",
  "test/remediation/execution/verification/shown-statuses.test.ts",
  "test/remediation/state/wall-clock-changes.system.test.ts",
  "test/simulator/api/statistics.test.ts",
  "test/monitoring/alerts/failure-alerts.system.test.ts",
  "test/monitoring/alerts/quiet-alerts.system.test.ts",
  "test/browser/scale.system.test.ts",
];

export default defineConfig({
  test: {
    include: ["test/**/*.world.test.ts", ...LONG_TESTS],
    env: { PROXYWARDEN_LONG_TESTS: "1" },
    testTimeout: 1_800_000,
  },
});
