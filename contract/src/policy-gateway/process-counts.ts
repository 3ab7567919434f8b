import { z } from 'zod'

/** How far a change of what is in force has come. */
export const ProcessCounts = {
  is_applied: z.boolean().describe('Every live process has applied the last change.'),
  processes: z.object({
    live: z.int().min(0),
    applied: z.int().min(0),
    pending: z.int().min(0).describe('Live, but the last change is not yet in force there.'),
    failed: z
      .int()
      .min(0)
      .describe('Live, but could not apply the last change: the older version stays in force.'),
    silent: z
      .int()
      .min(0)
      .describe('Has not reported recently, although it has not been stopped properly.'),
  }),
}
