import { DAY_MS, type DurationMs, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import type { Random } from "../../base/random.ts";
import type { EpochMs } from "../../model/time.ts";
import { exponential, weightedChoice } from "../hash.ts";
import { STATE, TYPES } from "./sessions.ts";

/** The busiest hour, UTC, and how far demand swings about its mean over the day. */
const PEAK_HOUR = 15;
const SWING = 0.15;

/** How long sessions of each type live on average, and how many of the sessions that start are of it. */
const MIX = [
  { type: TYPES.indexOf("socks5"), weight: 30, meanMs: 15 * MINUTE_MS },
  { type: TYPES.indexOf("http"), weight: 20, meanMs: 2 * MINUTE_MS },
  { type: TYPES.indexOf("https"), weight: 45, meanMs: 6 * MINUTE_MS },
  { type: TYPES.indexOf("websocket"), weight: 5, meanMs: 40 * MINUTE_MS },
] as const;
/** The mix of a network at a given moment: those that live long are met more often than they start. */
const chooseStanding = weightedChoice(MIX.map(({ weight, meanMs }) => ({ weight: weight * meanMs })));
const chooseStarting = weightedChoice(MIX);
const LIFE_MS_MIN: DurationMs = SECOND_MS;
const LIFE_MS_MAX: DurationMs = DAY_MS;

/** Mean life of all sessions that start. */
export const LIFE_MS_MEAN: DurationMs = MIX.reduce((sum, { weight, meanMs }) => sum + (weight * meanMs) / 100, 0);

/** Mean pace of a session, bytes a millisecond; chance makes many slow ones and a few fast. */
export const RATE_MEAN = 24;
const RATE_MAX = 10_000;

/** Shares of sessions that end badly, on a healthy node and on an ailing one, and of those that end by time-out. */
const FAILURE_SHARE = 0.015;
const FAILURE_SHARE_AILING = 0.35;
const TIMEOUT_SHARE = 0.4;
/** Sessions that fail on an ailing node fail early. */
const EARLY = 0.1;

const CUSTOMERS_MIN = 5;
const SESSIONS_PER_CUSTOMER = 20;
/** The exponent of the long tail: the first tenth of the customers has almost half of the sessions. */
const TAIL = 3;

/** What a session will be. */
export interface Prospect {
  /** Index into TYPES. */
  readonly type: number;
  /** How long it moves bytes. */
  readonly lifeMs: DurationMs;
  /** Index into STATES of the state it ends in. */
  readonly destiny: number;
  /** Bytes a millisecond, whole, from 1. */
  readonly rate: number;
}

/** Demand at that instant, as a multiple of its mean over the day. */
export const dayCurve = (at: EpochMs): number => 1 + SWING * Math.cos(((at / HOUR_MS - PEAK_HOUR) / 24) * 2 * Math.PI);

/** The session that starts next, on a node that ails or not. */
export function nextSession(random: Random, ailing: boolean): Prospect {
  return prospect(random, MIX[chooseStarting(random())]!, ailing);
}

/** One of the sessions that are there at a given moment: its prospect counts from that moment, its `age` before it. */
export function standingSession(random: Random, ailing: boolean): Prospect & { readonly ageMs: DurationMs } {
  const kind = MIX[chooseStanding(random())]!;
  return { ...prospect(random, kind, ailing), ageMs: lifetime(kind.meanMs, random) };
}

/** How many customers share that many sessions. */
export const customerCount = (sessions: number): number =>
  Math.max(CUSTOMERS_MIN, Math.ceil(sessions / SESSIONS_PER_CUSTOMER));

/** The customer of a session, of `customers`: few have many sessions, many have few. */
export const nextCustomer = (random: Random, customers: number): number => Math.floor(customers * random() ** TAIL);

function prospect(random: Random, kind: { type: number; meanMs: DurationMs }, ailing: boolean): Prospect {
  const fails = random() < (ailing ? FAILURE_SHARE_AILING : FAILURE_SHARE);
  const lifeMs = lifetime(kind.meanMs * (fails && ailing ? EARLY : 1), random);
  const failure = random() < TIMEOUT_SHARE ? STATE.timeout : STATE.error;
  const rate = Math.min(RATE_MAX, 1 + Math.floor(exponential(RATE_MEAN, random())));
  return { type: kind.type, lifeMs, destiny: fails ? failure : STATE.closed, rate };
}

const lifetime = (meanMs: DurationMs, random: Random): DurationMs =>
  Math.min(LIFE_MS_MAX, Math.max(LIFE_MS_MIN, Math.ceil(exponential(meanMs, random()))));
