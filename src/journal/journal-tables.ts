/** What SQLite and PostgreSQL write differently in the definition of a table. */
interface Dialect {
  /** Precedes the name of a table. */
  readonly prefix: string;
  /** The type of times since the Unix epoch, and of durations, in milliseconds. An accelerated clock returns fractions. */
  readonly time: string;
  readonly json: string;
  /** The key of a table whose rows have a number in their id. */
  readonly number: string;
  /** The key of a table whose rows are numbered in the order in which they are added. */
  readonly sequence: string;
  /** Options of a table with one of these keys, and of a table with another key. */
  readonly numbered: string;
  readonly keyed: string;
}

/**
 * Returns the SQL that creates the tables of the journal. `body` is the whole row as JSON; the other columns are for
 * queries. `number` is the number in the id, which counts episodes and actions together. `node_created_at` is null if not
 * known. `over_at` is when an action ended in any way, or null. `holds.policy` is '' if the hold is for all policies.
 * `ends_at` is null if only an operator ends the hold. `operator_commands.node` is null if a command does not concern a
 * node.
 */
export const createJournalTables = ({ prefix: p, time, json, number, numbered, keyed, sequence }: Dialect): string => `
  CREATE TABLE ${p}timers (
    node text NOT NULL,
    policy text NOT NULL,
    state text NOT NULL,
    true_ms ${time} NOT NULL,
    clear_ms ${time} NOT NULL,
    since ${time} NOT NULL,
    node_created_at ${time},
    PRIMARY KEY (node, policy)
  ) ${keyed};

  CREATE TABLE ${p}episodes (
    number ${number},
    id text NOT NULL UNIQUE,
    policy text NOT NULL,
    node text NOT NULL,
    state text NOT NULL,
    opened_at ${time} NOT NULL,
    closed_at ${time},
    body ${json} NOT NULL
  ) ${numbered};
  CREATE INDEX episodes_by_node ON ${p}episodes (node, opened_at);
  CREATE INDEX episodes_by_policy ON ${p}episodes (policy, opened_at);
  CREATE INDEX episodes_by_time ON ${p}episodes (opened_at);
  CREATE INDEX episodes_by_close ON ${p}episodes (closed_at);

  CREATE TABLE ${p}actions (
    number ${number},
    id text NOT NULL UNIQUE,
    episode text NOT NULL,
    policy text NOT NULL,
    node text NOT NULL,
    state text NOT NULL,
    created_at ${time} NOT NULL,
    over_at ${time},
    body ${json} NOT NULL
  ) ${numbered};
  CREATE INDEX actions_by_node ON ${p}actions (node, created_at);
  CREATE INDEX actions_by_policy ON ${p}actions (policy, created_at);
  CREATE INDEX actions_by_time ON ${p}actions (created_at);
  CREATE INDEX actions_by_over ON ${p}actions (over_at);
  CREATE INDEX actions_by_episode ON ${p}actions (episode);

  CREATE TABLE ${p}decisions (
    seq ${sequence},
    at ${time} NOT NULL,
    policy text NOT NULL,
    node text NOT NULL,
    episode text,
    verdict text NOT NULL,
    body ${json} NOT NULL
  ) ${numbered};
  CREATE INDEX decisions_by_node ON ${p}decisions (node, at);
  CREATE INDEX decisions_by_policy ON ${p}decisions (policy, at);
  CREATE INDEX decisions_by_time ON ${p}decisions (at);

  CREATE TABLE ${p}holds (
    node text NOT NULL,
    policy text NOT NULL,
    ends_at ${time},
    body ${json} NOT NULL,
    PRIMARY KEY (node, policy)
  ) ${keyed};
  CREATE INDEX holds_by_end ON ${p}holds (ends_at);

  CREATE TABLE ${p}operator_commands (
    seq ${sequence},
    at ${time} NOT NULL,
    node text,
    body ${json} NOT NULL
  ) ${numbered};
  CREATE INDEX operator_commands_by_node ON ${p}operator_commands (node, at);
  CREATE INDEX operator_commands_by_time ON ${p}operator_commands (at);`;
