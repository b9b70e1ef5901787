/** A range of whole numbers, both ends within it. */
export interface NumberRange {
  readonly begin: number;
  readonly end: number;
}

/** One interval as Alertmanager's `time_intervals` write it; an absent list is no restriction. */
export interface IntervalSpec {
  /** Minutes since midnight, the end not within; 1440 is midnight at the day's end. */
  readonly times?: readonly { readonly startMinute: number; readonly endMinute: number }[];
  /** 0 is Sunday. */
  readonly weekdays?: readonly NumberRange[];
  /** 1 to 31; negative ones count from the month's end, -1 being its last day. */
  readonly daysOfMonth?: readonly NumberRange[];
  /** 1 is January. */
  readonly months?: readonly NumberRange[];
  readonly years?: readonly NumberRange[];
  /** IANA time zone; absent: UTC. */
  readonly location?: string;
}

/** A named set of intervals: an instant is within if it is within any of them. */
export interface TimeInterval {
  readonly name: string;
  readonly intervals: readonly IntervalSpec[];
}
