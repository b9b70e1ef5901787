/** Whether tests run in their long form: `npm run world` sets this, `npm test` does not. */
export const isLongRun = process.env.PROXYWARDEN_LONG_TESTS === "1";
