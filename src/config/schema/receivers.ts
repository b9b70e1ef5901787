import { z } from "zod";
import {
  filePath,
  hasExactlyOne,
  httpUrl,
  list,
  nonBlankText,
  RUN_ALWAYS,
  section,
  valueKinds,
} from "./value-types.ts";

const RECEIVERS_MAX = 100;
const DESTINATION_KEYS = ["webhook_url", "webhook_url_file", "alertmanager"] as const;

const WEBHOOK_URL = { name: "URL", secret: "the webhook's URL" };

const receiver = section({
  name: nonBlankText("a name", { name: "string" }).describe("Name, for the notify steps of policies."),
  webhook_url: httpUrl("an http or https URL", () => null, WEBHOOK_URL)
    .exactOptional()
    .describe("URL to which notices are posted, as JSON."),
  webhook_url_file: filePath().exactOptional().describe("File that holds such a URL. Instead of `webhook_url`."),
  alertmanager: z
    .literal(true, { error: "must be true" })
    .register(valueKinds, { name: "true" })
    .exactOptional()
    .describe("Notices become alerts of the Alertmanager that the section `alertmanager` names."),
})
  .refine((value) => hasExactlyOne(value, ...DESTINATION_KEYS), {
    ...RUN_ALWAYS,
    error: `must have exactly one of ${DESTINATION_KEYS.join(", ")}`,
  })
  .meta({ oneOf: DESTINATION_KEYS.map((way) => ({ required: [way] })) });

/** The section `receivers`: where notices go. */
export const receiversSchema = list(receiver, "receivers", RECEIVERS_MAX)
  .default([])
  .describe("Where notices go: those of notify steps, and what befalls the fleet as a whole.");
