/** Lets others have the thread for a moment: what goes over a large fleet comes in slices. */
export const breath = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
