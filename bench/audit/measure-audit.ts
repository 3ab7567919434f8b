import { createClient } from '@gatehouse/contract/client'
import { createExport } from '@gatehouse/contract/exports/export-sink'
import { startElasticDouble } from '@gatehouse/tools/destinations/elastic'

import { createCaller } from '../callers.ts'
import { modes } from '../chat-call.ts'
import { cpuTableOf } from '../cpu/cpu-table.ts'
import { type CpuBench, measureCpu } from '../cpu/measure-cpu.ts'
import { deferStop } from '../defer-stop.ts'
import { startGatehouse } from '../targets/gatehouse.ts'
import type { Target } from '../targets/target.ts'

type Options = Omit<CpuBench, 'targets'> & { bare: Target; cleanup: AsyncDisposableStack }

/**
 * What the audit log costs a call outside the process that serves it: the worker numbers and hashes its event, signs checkpoints
 * and, where the organization has a sink, delivers it. The events are written with the settlements, as part of the usual call.
 */
export async function measureAudit(options: Options) {
  const { bare, upstream, servers, cleanup, plan } = options
  const double = cleanup.use(await startElasticDouble({ authorization: 'ApiKey YmVuY2g=' }))
  const environment = { EXPORT_PRIVATE_TARGETS: new URL(double.endpoint).host }
  const gatehouse = await deferStop(
    await startGatehouse({ upstream: upstream.url, servers, environment }),
    cleanup,
  )
  const without = await createCaller(gatehouse, 'Worker, no sink')
  const delivered = await createCaller(gatehouse, 'Worker, one sink')
  await createClient({
    baseUrl: gatehouse.url,
    credential: delivered.organization.admin_key,
  }).call(createExport, {
    body: {
      type: 'elastic',
      config: { endpoint: double.endpoint, api_key: 'YmVuY2g=', ca_cert: double.ca },
    },
  })
  const pids = [gatehouse.workerPid]
  const targets = [bare, gatehouse, { ...without.target, pids }, { ...delivered.target, pids }]
  const results = await measureCpu({ ...options, targets }, modes)
  for (const [mode, measured] of results) {
    console.log(`\nAudit log, ${mode}, ${plan.windows} windows: median (least)`)
    console.log(cpuTableOf(measured))
  }
  if (double.received.length === 0) throw new Error('The sink has got no events.')
  console.log(`The sink has got ${double.received.length} events.`)
}
