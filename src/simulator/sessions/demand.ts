import { DAY_MS, type DurationMs, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import type { Random } from "../../base/random.ts";
import type { EpochMs } from "../../model/time.ts";
import { exponential, weightedChoice } from "../hash.ts";
import { SESSION_KINDS, STATE_INDEX } from "./sessions.ts";

/** The busiest hour, UTC. */
const PEAK_HOUR = 15;
/** Share by which demand varies around its daily mean. */
const DEMAND_SWING = 0.15;

/** Mean duration of sessions by type, and percentage of new sessions. */
const SESSION_MIX = [
  { type: SESSION_KINDS.indexOf("socks5"), weight: 30, meanMs: 15 * MINUTE_MS },
  { type: SESSION_KINDS.indexOf("http"), weight: 20, meanMs: 2 * MINUTE_MS },
  { type: SESSION_KINDS.indexOf("https"), weight: 45, meanMs: 6 * MINUTE_MS },
  { type: SESSION_KINDS.indexOf("websocket"), weight: 5, meanMs: 40 * MINUTE_MS },
] as const;
/** Types with a longer duration are more frequent among ongoing sessions. */
const chooseOngoingKind = weightedChoice(SESSION_MIX.map(({ weight, meanMs }) => ({ weight: weight * meanMs })));
const chooseNewKind = weightedChoice(SESSION_MIX);
const SESSION_MS_MIN: DurationMs = SECOND_MS;
const SESSION_MS_MAX: DurationMs = DAY_MS;

/** Mean duration of new sessions. */
export const SESSION_MS_MEAN: DurationMs = SESSION_MIX.reduce(
  (sum, { weight, meanMs }) => sum + (weight * meanMs) / 100,
  0,
);

/** Mean transfer rate of a session in bytes per millisecond. Rates are exponentially distributed. */
export const BYTES_PER_MS_MEAN = 24;
const BYTES_PER_MS_MAX = 10_000;

/** Share of sessions that fail on a healthy node, and on a failing one. */
const FAILURE_SHARE = 0.015;
const FAILURE_SHARE_FAILING_NODE = 0.35;
/** Share of failed sessions that end with a timeout. */
const TIMEOUT_SHARE = 0.4;
/** Mean duration of a session that fails on a failing node, as a share of the usual mean. */
const EARLY_FAILURE_SHARE = 0.1;

const CUSTOMERS_MIN = 5;
const SESSIONS_PER_CUSTOMER = 20;
/** Exponent of the distribution: a tenth of the customers have almost half of the sessions. */
const CUSTOMER_TAIL_EXPONENT = 3;

/** The planned course of a session. */
export interface SessionPlan {
  /** Index into SESSION_KINDS. */
  readonly type: number;
  /** Duration of the transfer. */
  readonly activeMs: DurationMs;
  /** Index into SESSION_STATES. */
  readonly finalState: number;
  /** Bytes per millisecond, an integer from 1. */
  readonly rate: number;
}

/** Returns the demand at a time as a multiple of the daily mean. */
export const demandAt = (at: EpochMs): number =>
  1 + DEMAND_SWING * Math.cos(((at / HOUR_MS - PEAK_HOUR) / 24) * 2 * Math.PI);

/** Draws a new session on a healthy or failing node. */
export function drawNewSession(random: Random, isFailing: boolean): SessionPlan {
  return drawSessionPlan(random, SESSION_MIX[chooseNewKind(random())]!, isFailing);
}

/** Draws an ongoing session. Its plan covers the remaining time; `ageMs` is the time since its start. */
export function drawOngoingSession(random: Random, isFailing: boolean): SessionPlan & { readonly ageMs: DurationMs } {
  const kind = SESSION_MIX[chooseOngoingKind(random())]!;
  return { ...drawSessionPlan(random, kind, isFailing), ageMs: drawSessionMs(kind.meanMs, random) };
}

/** Returns the number of customers for a number of sessions. */
export const customerCount = (sessions: number): number =>
  Math.max(CUSTOMERS_MIN, Math.ceil(sessions / SESSIONS_PER_CUSTOMER));

/** Draws the customer of a session, an index below `customers`. Lower indexes are more frequent. */
export const nextCustomer = (random: Random, customers: number): number =>
  Math.floor(customers * random() ** CUSTOMER_TAIL_EXPONENT);

function drawSessionPlan(random: Random, kind: { type: number; meanMs: DurationMs }, isFailing: boolean): SessionPlan {
  const fails = random() < (isFailing ? FAILURE_SHARE_FAILING_NODE : FAILURE_SHARE);
  const activeMs = drawSessionMs(kind.meanMs * (fails && isFailing ? EARLY_FAILURE_SHARE : 1), random);
  const failure = random() < TIMEOUT_SHARE ? STATE_INDEX.timeout : STATE_INDEX.error;
  const rate = Math.min(BYTES_PER_MS_MAX, 1 + Math.floor(exponential(BYTES_PER_MS_MEAN, random())));
  return { type: kind.type, activeMs, finalState: fails ? failure : STATE_INDEX.closed, rate };
}

const drawSessionMs = (meanMs: DurationMs, random: Random): DurationMs =>
  Math.min(SESSION_MS_MAX, Math.max(SESSION_MS_MIN, Math.ceil(exponential(meanMs, random()))));
