import { z } from "zod";
import { always, exactlyOne, filePath, httpUrl, kinds, list, section, words } from "./value-types.ts";

const RECEIVERS_MAX = 100;
const WAYS = ["webhook_url", "webhook_url_file", "alertmanager"] as const;

const webhook = { name: "URL", secret: "the webhook's URL" };

const receiver = section({
  name: words("a name", { name: "string" }).describe("Name, for the notify steps of policies."),
  webhook_url: httpUrl("an http or https URL", () => null, webhook)
    .exactOptional()
    .describe("URL to which notices are posted, as JSON."),
  webhook_url_file: filePath().exactOptional().describe("File that holds such a URL. Instead of `webhook_url`."),
  alertmanager: z
    .literal(true, { error: "must be true" })
    .register(kinds, { name: "true" })
    .exactOptional()
    .describe("Notices become alerts of the Alertmanager that the section `alertmanager` names."),
})
  .refine((value) => exactlyOne(value, ...WAYS), { ...always, error: `must have exactly one of ${WAYS.join(", ")}` })
  .meta({ oneOf: WAYS.map((way) => ({ required: [way] })) });

/** The section `receivers`: where notices go. */
export const receiversSchema = list(receiver, "receivers", RECEIVERS_MAX)
  .default([])
  .describe("Where notices go: those of notify steps, and what befalls the fleet as a whole.");
