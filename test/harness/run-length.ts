/** Whether tests run in their long form: `npm run world` sets this, the other suites do not. */
export const isLongRun = process.env.PROXYWARDEN_LONG_TESTS === "1";

/** Whether properties try all of their cases: also in mutation tests, which set this. */
const isLongProperty = isLongRun || process.env.PROXYWARDEN_LONG_PROPERTIES === "1";

/** Returns how many cases fast-check tries for a property: `count` in the long form, otherwise a tenth of them. */
export const propertyRuns = (count: number) => ({ numRuns: isLongProperty ? count : Math.ceil(count / 10) });
