import type { Status } from "../api.ts";
import type { OperatorCommand } from "./command-buttons.ts";

const pause: OperatorCommand = {
  path: "pause",
  name: "Pause",
  meaning: "Holds all actions until you resume them or the pause expires. Polling continues.",
  hasReason: true,
  hasDuration: true,
};

/** The command that ends the pause. */
export const resume: OperatorCommand = {
  path: "resume",
  name: "Resume",
  meaning: "Policies act again.",
};

/** The command that closes the circuit breaker. */
export const resetBreaker: OperatorCommand = {
  path: "breaker/reset",
  name: "Reset breaker",
  meaning:
    "Closes the breaker, resets its count, and restores the mode of policies that fell back to dry_run. Make sure you know why it opened.",
};

/** The command that accepts the current numbers of nodes and sessions. */
export const acceptInventory: OperatorCommand = {
  path: "inventory/accept",
  name: "Accept inventory",
  meaning:
    "Uses the current node count as the new baseline. Choose this if the missing nodes are gone for good: removed on purpose, or lost after an action. Nodes and sessions that the lists count but do not show are no longer counted as missing.",
};

/** Returns the command of the header, which pauses or resumes the daemon. */
export const pauseOrResume = ({ remediation }: Status): OperatorCommand =>
  remediation.paused === null ? pause : resume;
