import { z } from 'zod'

import { adminEndpoint } from '../endpoint.ts'
import { Timestamp } from '../text.ts'

/** How many processes an answer has at most. */
export const processesShown = 1000

const Processes = z
  .object({
    object: z.literal('organization.processes'),
    total: z.int().min(0).describe('All processes, also those that are not listed.'),
    data: z
      .array(
        z.object({
          id: z.string().describe('Names the process as long as it runs, and nothing else.'),
          release: z
            .string()
            .nullable()
            .describe('null: an earlier release, which does not say it.'),
          started_at: Timestamp,
          last_seen_at: Timestamp.nullable().describe(
            'null: it is live, so it was seen within the last 15 seconds.',
          ),
          is_ready: z.boolean().nullable().describe('Whether it should get calls.'),
          is_counting_locally: z
            .boolean()
            .nullable()
            .describe('It counts limits in its own memory, with its share of them.'),
          policy_epoch: z
            .int()
            .min(0)
            .describe('Which state of the policies of the organization it has applied.'),
          is_failed: z.boolean().describe('It could not apply the newest state.'),
        }),
      )
      .max(processesShown)
      .describe('Those that began last come first.'),
  })
  .meta({ id: 'Processes' })
export type Processes = z.infer<typeof Processes>

export const readProcesses = adminEndpoint({
  id: 'readProcesses',
  summary: 'Read which processes answer calls, and which state of the policies each has applied',
  method: 'GET',
  path: '/v1/organization/processes',
  permission: 'policies.read',
  response: Processes,
  isConditional: true,
  errors: [],
})
