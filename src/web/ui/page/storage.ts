/** Storage of the browser: the local one is kept, the session's until the tab is closed. A user can block both. */
type StorageName = "localStorage" | "sessionStorage";

/** Returns a stored text, or null if there is none or storage is blocked. */
export function readStored(name: StorageName, key: string): string | null {
  try {
    return globalThis[name].getItem(key);
  } catch {
    return null;
  }
}

/** Stores a text, or removes it if it is null. Does nothing if storage is blocked. */
export function store(name: StorageName, key: string, text: string | null): void {
  try {
    if (text === null) globalThis[name].removeItem(key);
    else globalThis[name].setItem(key, text);
  } catch {
    // The page works without it.
  }
}
