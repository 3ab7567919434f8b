import Fastify, { type FastifyInstance } from 'fastify'

import type { KeptProcess } from './keep-running.ts'
import { judgeReadiness } from './overall-readiness.ts'
import type { MetricSums } from './sum-metrics.ts'

type Options = {
  processes: readonly KeptProcess[]
  sums: MetricSums
  isStopping: () => boolean
}

/** Metrics and health details of all processes, on one port. */
export function createSupervisorOperations(options: Options): FastifyInstance {
  const { processes, sums, isStopping } = options
  const app = Fastify({ logger: false, forceCloseConnections: true })
  app.get('/metrics', async (_, reply) => {
    void reply.type(sums.contentType)
    return sums.print(() => Promise.all(processes.map((each) => each.readMetrics())))
  })
  app.get('/health/live', () => ({ status: 'ok' }))
  app.get('/health/ready', async (_, reply) => {
    const overall = isStopping()
      ? { status: 'unavailable', reasons: ['draining'] }
      : judgeReadiness(await Promise.all(processes.map((each) => each.readiness())))
    void reply.status(overall.status === 'unavailable' ? 503 : 200)
    return overall
  })
  app.get('/policies/:organization_id', async (request) => {
    const { organization_id: organizationId } = request.params as { organization_id: string }
    const describe = async ({ number, ask }: KeptProcess) => {
      const policies = (await ask({ about: 'policies', organizationId })) as object | undefined
      return { process: number, ...(policies ?? { error: 'no answer' }) }
    }
    return { processes: await Promise.all(processes.map(describe)) }
  })
  return app
}
