import type { FastifyInstance } from 'fastify'

import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'

import { serveReadTraffic } from './read-traffic.ts'
import { serveReadRefusals } from './refusals/read-refusals.ts'

/** How many calls there were, how they ended, and who was refused. */
export function serveTraffic(app: FastifyInstance, deps: { db: Db; now: Clock }) {
  serveReadTraffic(app, deps)
  serveReadRefusals(app, deps)
}
