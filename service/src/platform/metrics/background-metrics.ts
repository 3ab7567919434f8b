import { Counter, type Registry } from 'prom-client'

/** What the worker does beside calls, by the names of its tasks (worker.ts). */
export const backgroundMetrics = (registers: Registry[]) => ({
  backgroundSeconds: new Counter({
    name: 'gatehouse_background_seconds_total',
    help: 'Time that the background tasks of the worker took, by task, without their pauses; in this process and in PostgreSQL together.',
    labelNames: ['task'],
    registers,
  }),
  backgroundRuns: new Counter({
    name: 'gatehouse_background_runs_total',
    help: 'Passes of background tasks that came to their end, by task.',
    labelNames: ['task'],
    registers,
  }),
  backgroundFailures: new Counter({
    name: 'gatehouse_background_failures_total',
    help: 'Passes of background tasks that failed, by task; the log has the reason.',
    labelNames: ['task'],
    registers,
  }),
})
