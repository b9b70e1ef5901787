import { DAY_MS, type DurationMs, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import type { Random } from "../../base/random.ts";
import type { EpochMs } from "../../model/time.ts";
import { exponential, weightedChoice } from "../hash.ts";
import { SESSION_KINDS, STATE_INDEX } from "./sessions.ts";

/** The busiest hour, UTC, and how far demand swings about its mean over the day. */
const PEAK_HOUR = 15;
const DEMAND_SWING = 0.15;

/** How long sessions of each type live on average, and how many of the sessions that start are of it. */
const SESSION_MIX = [
  { type: SESSION_KINDS.indexOf("socks5"), weight: 30, meanMs: 15 * MINUTE_MS },
  { type: SESSION_KINDS.indexOf("http"), weight: 20, meanMs: 2 * MINUTE_MS },
  { type: SESSION_KINDS.indexOf("https"), weight: 45, meanMs: 6 * MINUTE_MS },
  { type: SESSION_KINDS.indexOf("websocket"), weight: 5, meanMs: 40 * MINUTE_MS },
] as const;
/** The mix of a network at a given moment: those that live long are met more often than they start. */
const chooseOngoingKind = weightedChoice(SESSION_MIX.map(({ weight, meanMs }) => ({ weight: weight * meanMs })));
const chooseNewKind = weightedChoice(SESSION_MIX);
const SESSION_MS_MIN: DurationMs = SECOND_MS;
const SESSION_MS_MAX: DurationMs = DAY_MS;

/** Mean life of all sessions that start. */
export const SESSION_MS_MEAN: DurationMs = SESSION_MIX.reduce(
  (sum, { weight, meanMs }) => sum + (weight * meanMs) / 100,
  0,
);

/** Mean pace of a session, bytes a millisecond; chance makes many slow ones and a few fast. */
export const BYTES_PER_MS_MEAN = 24;
const BYTES_PER_MS_MAX = 10_000;

/** Shares of sessions that end badly, on a healthy node and on an ailing one, and of those that end by time-out. */
const FAILURE_SHARE = 0.015;
const FAILURE_SHARE_FAILING_NODE = 0.35;
const TIMEOUT_SHARE = 0.4;
/** Sessions that fail on an ailing node fail early. */
const EARLY_FAILURE_SHARE = 0.1;

const CUSTOMERS_MIN = 5;
const SESSIONS_PER_CUSTOMER = 20;
/** The exponent of the long tail: the first tenth of the customers has almost half of the sessions. */
const CUSTOMER_TAIL_EXPONENT = 3;

/** What a session will be. */
export interface SessionPlan {
  /** Index into TYPES. */
  readonly type: number;
  /** How long it moves bytes. */
  readonly activeMs: DurationMs;
  /** Index into STATES of the state it ends in. */
  readonly finalState: number;
  /** Bytes a millisecond, whole, from 1. */
  readonly rate: number;
}

/** Demand at that instant, as a multiple of its mean over the day. */
export const demandAt = (at: EpochMs): number =>
  1 + DEMAND_SWING * Math.cos(((at / HOUR_MS - PEAK_HOUR) / 24) * 2 * Math.PI);

/** The session that starts next, on a node that ails or not. */
export function drawNewSession(random: Random, isFailing: boolean): SessionPlan {
  return drawSessionPlan(random, SESSION_MIX[chooseNewKind(random())]!, isFailing);
}

/** One of the sessions that are there at a given moment: its prospect counts from that moment, its `age` before it. */
export function drawOngoingSession(random: Random, isFailing: boolean): SessionPlan & { readonly ageMs: DurationMs } {
  const kind = SESSION_MIX[chooseOngoingKind(random())]!;
  return { ...drawSessionPlan(random, kind, isFailing), ageMs: drawSessionMs(kind.meanMs, random) };
}

/** How many customers share that many sessions. */
export const customerCount = (sessions: number): number =>
  Math.max(CUSTOMERS_MIN, Math.ceil(sessions / SESSIONS_PER_CUSTOMER));

/** The customer of a session, of `customers`: few have many sessions, many have few. */
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
