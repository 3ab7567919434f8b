import { setTimeout as sleep } from 'node:timers/promises'

import { createClient } from '@gatehouse/contract/client'
import { createExport, updateExport } from '@gatehouse/contract/exports/export-sink'
import { startElasticDouble } from '@gatehouse/tools/destinations/elastic'

import { createCaller } from '../callers.ts'
import { deferStop } from '../defer-stop.ts'
import { probeTarget } from '../probe-target.ts'
import type { OwnServers } from '../servers/own-servers.ts'
import { startGatehouse } from '../targets/gatehouse.ts'
import type { Target } from '../targets/target.ts'
import { countNumbered, repeatLastCall } from './backlog-store.ts'

const organizations = 1000
const eventsBehind = 100_000
/** Checkpoints are delivered too, and events before the sink are not: only more than these are a backlog. */
const aroundEvents = 1000
/** What the destination takes: it must not have caught up before the last window has ended. */
const eventsPerSecond = 2000
const numberedWithinMs = 600_000

type Options = { upstream: Target; servers: OwnServers; cleanup: AsyncDisposableStack }

/** A Gatehouse with a thousand organizations, and one more with a sink that is switched off for now. */
export async function startCalm({ upstream, servers, cleanup }: Options) {
  const double = cleanup.use(await startElasticDouble({ authorization: 'ApiKey YmVuY2g=' }))
  const environment = { EXPORT_PRIVATE_TARGETS: new URL(double.endpoint).host }
  const gatehouse = await deferStop(
    await startGatehouse({ upstream: upstream.url, servers, environment, organizations }),
    cleanup,
  )
  const { organization, target } = await createCaller(gatehouse, 'Sink')
  const credential = organization.admin_key
  const client = createClient({ baseUrl: gatehouse.url, credential })
  const { export: sink } = await client.call(createExport, {
    body: {
      type: 'elastic',
      enabled: false,
      config: { endpoint: double.endpoint, api_key: 'YmVuY2g=', ca_cert: double.ca },
    },
  })
  await probeTarget(target, 'plain')
  const { url } = gatehouse.database
  const { organization_id } = organization
  let written = 0
  let [switchedAt, receivedBefore] = [0, 0]
  double.intervene(async () => {
    const received = double.received.length - receivedBefore
    const dueAt = switchedAt + (received / eventsPerSecond) * 1000
    await sleep(Math.max(0, dueAt - performance.now()))
    return undefined
  })
  const countBehind = async () =>
    (await countNumbered(url, organization_id)) - double.received.length
  return {
    gatehouse,
    isBehind: async () => (await countBehind()) > aroundEvents,
    switchSink(enabled: boolean) {
      ;[switchedAt, receivedBefore] = [performance.now(), double.received.length]
      return client.call(updateExport, { params: { export_id: sink.id }, body: { enabled } })
    },
    /** Writes events until the sink is as far behind as it should be, and waits until they are numbered. */
    async fallBehind() {
      const times = eventsBehind - (await countBehind())
      if (times <= 0) return
      console.log(`Writing ${times} events that the sink has not got`)
      await repeatLastCall(url, organization_id, { from: written, times })
      written += times
      for (const deadline = Date.now() + numberedWithinMs; Date.now() < deadline;) {
        if ((await countBehind()) >= eventsBehind) return
        await sleep(500)
      }
      throw new Error(`Only ${await countBehind()} of ${eventsBehind} events were numbered.`)
    },
  }
}
export type CalmGatehouse = Awaited<ReturnType<typeof startCalm>>
