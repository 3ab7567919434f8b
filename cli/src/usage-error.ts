/** The caller can fix this alone; nothing was sent. Exit code 2. */
export class UsageError extends Error {}
