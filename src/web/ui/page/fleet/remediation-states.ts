/** A remediation state, which the page counts, colors and filters by. */
interface RemediationState {
  /** Name in the address of the page and in the style sheet, where the class of its ring is `is-ring-NAME`. */
  readonly name: string;
  readonly label: string;
  readonly meaning: string;
  /** Marks of the nodes in this state. */
  readonly marks: readonly string[];
}

/** Every state in which the daemon acts on a node or is kept from acting. */
export const REMEDIATION_STATES: readonly RemediationState[] = [
  {
    name: "treated",
    label: "being treated",
    meaning: "A step is in progress, its effect is being observed, or the daemon has quarantined the node.",
    marks: ["acting", "episode"],
  },
  {
    name: "in_flight",
    label: "waiting (in flight)",
    meaning: "Waits until an action in flight is verified (safety.max_in_flight).",
    marks: ["in_flight"],
  },
  {
    name: "canary",
    label: "waiting (canary)",
    meaning: "Waits until the first action under a new or changed policy is verified (safety.canary).",
    marks: ["canary"],
  },
  {
    name: "held",
    label: "held",
    meaning:
      "A policy fires, but a guard holds the node; or an operator holds it or lifted the daemon's quarantine; or another client acted on it. Its panel says why.",
    marks: ["firing", "held"],
  },
  {
    name: "awaiting",
    label: "waiting for approval",
    meaning: "An action waits for an operator's approval.",
    marks: ["awaiting"],
  },
  {
    name: "given_up",
    label: "given up",
    meaning: "No step of the policy healed the node.",
    marks: ["given_up"],
  },
  {
    name: "dry_run",
    label: "dry run",
    meaning: "A policy in dry run fires. Nothing is sent.",
    marks: ["dry_run"],
  },
];

/** Description of each mark that is not `none`. */
const MARK_LABELS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(REMEDIATION_STATES.flatMap(({ label, marks }) => marks.map((mark) => [mark, label]))),
  pending: "pending",
  episode: "treated, being observed",
};

/** Returns the description of a mark, or "" for `none`. */
export const markLabel = (mark: string): string => MARK_LABELS[mark] ?? "";

/** Returns the remediation state of a mark, or undefined for `none` and `pending`. */
export const stateOfMark = (mark: string): RemediationState | undefined =>
  REMEDIATION_STATES.find(({ marks }) => marks.includes(mark));

/** Statuses that need no attention. */
const HEALTHY_STATUSES: ReadonlySet<string> = new Set(["online", "maintenance"]);
/** Marks that need no attention. */
const QUIET_MARKS: ReadonlySet<string> = new Set(["none", "pending", "dry_run"]);

/** Returns whether a node with a status and a mark needs an operator's attention. */
export const needsAttention = (status: string, mark: string): boolean =>
  !HEALTHY_STATUSES.has(status) || !QUIET_MARKS.has(mark);
