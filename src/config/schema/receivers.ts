import { z } from "zod";
import { exactlyOneOf, filePath, httpUrl, list, nonBlankText, section, valueKinds } from "./value-types.ts";

const RECEIVERS_MAX = 100;

const WEBHOOK_URL = { name: "URL", secret: "the webhook's URL" };

const receiver = exactlyOneOf(
  section({
    name: nonBlankText("a name", { name: "string" }).describe("Name, for the notify steps of policies."),
    webhook_url: httpUrl("an http or https URL", () => null, WEBHOOK_URL)
      .exactOptional()
      .describe("URL that notifications are posted to, as JSON."),
    webhook_url_file: filePath().exactOptional().describe("File that holds such a URL. Instead of `webhook_url`."),
    alertmanager: z
      .literal(true, { error: "must be true" })
      .register(valueKinds, { name: "true" })
      .exactOptional()
      .describe("Sends notifications as alerts to the Alertmanager in the section `alertmanager`."),
  }),
  "webhook_url",
  "webhook_url_file",
  "alertmanager",
);

/** The section `receivers`: where notifications go. */
export const receiversSchema = list(receiver, "receivers", RECEIVERS_MAX)
  .default([])
  .describe("Where notifications go: those of notify steps, and those about the fleet.");
