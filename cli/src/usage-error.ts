/** The command line is wrong, and nothing was sent. Exit code 2. */
export class UsageError extends Error {}
