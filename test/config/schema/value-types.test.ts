// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are YAML, and hold its variables
import { expect, test } from "vitest";
import { configErrors, withService } from "../config-fixtures.ts";

test.each([
  ['web: { web_config_file: " " }', '2:25: web.web_config_file: found " "; must be the path of a file'],
  [
    'web: { web_config_file: "${BLANK}" }',
    '2:25: web.web_config_file: found " " from ${BLANK}; must be the path of a file',
  ],
  ['web: { admin_token_file: " " }', '2:26: web.admin_token_file: found " "; must be the path of a file'],
  ['state: { path: " " }', '2:16: state.path: found " "; must be the path of a folder'],
  [
    'collect: { nodes: { cron: " " } }',
    '2:27: collect.nodes.cron: found " "; must be a cron expression of five or six fields',
  ],
  ['export: { deny: [" "] }', '2:18: export.deny[0]: found " "; must be the name of a metric family'],
])("a blank text is rejected: %s", (section, error) => {
  expect(configErrors(withService(section), { BLANK: " " })).toEqual([error]);
});
