/** How many separate queues (batch-queues.ts) may run a statement at the same time. */
export const separateStatementsMax = 12

/**
 * The database pool of the hold queue and of the events of calls. Requests use another pool, so a busy API cannot keep
 * calls from being paid for and recorded.
 */
export const holdPool = {
  /**
   * The shared queue, that of calls without a bill, the events, the look for locked accounts, and the amounts of quotas:
   * one statement each.
   */
  poolSize: 5 + separateStatementsMax,
  /** A statement that waits longer for a locked account fails, and its organization gets a separate queue. */
  lockTimeoutMs: 200,
}
