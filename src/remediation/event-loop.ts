/** Lets others have the thread for a moment: what goes over a large fleet comes in slices. */
export const yieldToEventLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
