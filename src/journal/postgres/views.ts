/** Returns the SQL that converts milliseconds since the Unix epoch to timestamptz. */
const time = (milliseconds: string): string => `to_timestamp((${milliseconds})::float8 / 1000)`;

/**
 * Returns the SQL that creates or replaces the views for operators and dashboards. They are documented in
 * docs/high-availability.md, so columns may be added, but neither removed nor changed. `s` is the quoted name of the
 * schema. Steps count from 1.
 */
export const createViews = (s: string): string => `
  CREATE OR REPLACE VIEW ${s}.proxywarden_episodes AS SELECT
    id,
    number,
    policy,
    node,
    body->>'country' AS country,
    body->>'region' AS region,
    state,
    (body->>'dryRun')::boolean AS dry_run,
    (body->>'step')::integer + 1 AS step,
    (body->>'acted')::integer AS steps_sent,
    (body->>'failures')::integer AS failed_attempts,
    (body->>'healed')::boolean AS healed,
    ${time("opened_at")} AS opened_at,
    ${time("body->>'stateAt'")} AS state_since,
    ${time("closed_at")} AS closed_at,
    ${time("closed_at")} - ${time("opened_at")} AS duration,
    body->'quarantine'->>'action' AS quarantine_action,
    ${time("body->'quarantine'->>'endsAt'")} AS quarantine_ends_at
  FROM ${s}.episodes;

  CREATE OR REPLACE VIEW ${s}.proxywarden_actions AS SELECT
    id,
    number,
    episode,
    policy,
    node,
    body->>'country' AS country,
    body->>'region' AS region,
    (body->>'step')::integer + 1 AS step,
    body->'request'->>'kind' AS action,
    (body->'request'->>'force')::boolean AS force,
    (body->'request'->>'durationMinutes')::float8 * interval '1 minute' AS quarantine_duration,
    body->'request'->>'reason' AS quarantine_reason,
    (body->>'dryRun')::boolean AS dry_run,
    state,
    body->>'outcome' AS outcome,
    (body->>'inDoubt')::boolean AS in_doubt,
    body->>'proof' AS proof,
    body->>'detail' AS detail,
    body->>'statusBefore' AS status_before,
    (body->>'uptimeHoursBefore')::float8 AS uptime_hours_before,
    ${time("created_at")} AS created_at,
    ${time("body->>'approvedAt'")} AS approved_at,
    CASE WHEN body->>'approvedAt' IS NOT NULL THEN 'approved' WHEN state = 'rejected' THEN 'rejected' END AS answer,
    body->'answered'->>'operator' AS answered_by,
    ${time("body->'answered'->>'at'")} AS answered_at,
    ${time("body->>'sentAt'")} AS sent_at,
    ${time("body->>'endedAt'")} AS ended_at,
    ${time("body->>'endedAt'")} - ${time("body->>'sentAt'")} AS duration,
    body->'evidence'->'fields' AS evidence
  FROM ${s}.actions;

  CREATE OR REPLACE VIEW ${s}.proxywarden_decisions AS SELECT
    seq,
    ${time("at")} AS at,
    policy,
    node,
    episode,
    (body->>'step')::integer + 1 AS step,
    body->>'mode' AS mode,
    verdict,
    ARRAY(SELECT blocker->>'reason' FROM jsonb_array_elements(body->'blockers') AS blocker) AS reasons,
    (SELECT string_agg(blocker->>'detail', '; ') FROM jsonb_array_elements(body->'blockers') AS blocker) AS detail,
    body->'evidence'->'fields' AS evidence,
    ${time("body->'evidence'->>'observedAt'")} AS observed_at
  FROM ${s}.decisions;

  CREATE OR REPLACE VIEW ${s}.proxywarden_orders AS SELECT
    seq,
    ${time("at")} AS at,
    body->>'operator' AS operator,
    body->>'command' AS command,
    node,
    body->>'action' AS action,
    body->>'detail' AS detail
  FROM ${s}.operator_commands;
`;
