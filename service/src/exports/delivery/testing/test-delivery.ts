import { createExport, retrieveExport } from '@gatehouse/contract/exports/export-sink'
import type { SinkType } from '@gatehouse/contract/exports/sink-config'
import { startAllDoubles } from '@gatehouse/tools/destinations/all-doubles'
import { expect, onTestFinished } from 'vitest'

import { insertEvents } from '#audit/event-store.ts'
import { buildRevisionEvent, operator } from '#audit/event.ts'
import { numberAllEvents } from '#audit/log/testing/number-all-events.ts'
import { deliverEvents } from '#exports/delivery/deliver-events.ts'
import type { DestinationDeps } from '#exports/destinations/destination.ts'
import { createDestinations } from '#exports/destinations/destinations.ts'
import { createTestSender } from '#exports/sinks/send-test.ts'
import { createSharedPace } from '#platform/background/run-task.ts'
import { createTenantEgress, type Egress } from '#platform/egress.ts'
import type { FindAddresses, Resolve } from '#platform/egress/find-addresses.ts'
import { createLog } from '#platform/log.ts'
import { createTestApi } from '#testing/test-api.ts'

type Sink = {
  id: string
  state: string
  pending_events: number
  lag_seconds: number
  last_error: string | null
  last_error_at: string | null
  last_success_at: string | null
  dead_letters: number
}

export const caughtUp = { timeout: 20_000, interval: 100 }

type Worker = Parameters<typeof deliverEvents>[0]

type Options = {
  resolve?: Resolve
  azureLoginUrl?: string
  ports?: readonly number[]
  findAddresses?: FindAddresses
}

/** The API with doubles of all destinations, and workers that deliver to them. */
export async function openDelivery({ resolve, ports, findAddresses, ...options }: Options = {}) {
  const doubles = await startAllDoubles()
  onTestFinished(() => doubles[Symbol.asyncDispose]())
  const privateTargets = doubles.targets
  const environment = { EXPORT_PRIVATE_TARGETS: privateTargets.join(',') }
  const logged: string[] = []
  const log = createLog('info', { write: (line) => logged.push(line) })
  const { azureLoginUrl = doubles.azureLoginUrl } = options
  const destinations = createDestinations({ azureLoginUrl, s3PatienceMs: 0 })
  const guard = resolve && { resolve }
  const openEgress = () => createTenantEgress({ privateTargets, ca: [doubles.ca], ...guard })
  const testEgress = openEgress()
  onTestFinished(() => testEgress.close())
  const requestBy =
    (egress: Egress): DestinationDeps['request'] =>
    (address, call) =>
      egress.request(address, {
        answerLimitBytes: 65_536,
        ...call,
        ...(ports && { ports }),
        deadlineMs: 3000,
      })
  const api = await createTestApi({
    environment,
    ...(findAddresses && { findAddresses }),
    change(house) {
      const { now, exports } = house
      const sendTest = createTestSender({ destinations, now, request: requestBy(testEgress) })
      return { ...house, log, exports: { ...exports, sendTest } }
    },
  })

  /** A worker that delivers until the test ends. */
  function startWorker(changed: Partial<Worker> = {}) {
    const egress = openEgress()
    const stopping = new AbortController()
    const { db, now, metrics, mutations } = api.house
    const running = deliverEvents(
      {
        db,
        now,
        log,
        metrics,
        secretBox: mutations.secretBox,
        pace: createSharedPace({ share: 0.5 }),
        destinations,
        request: requestBy(egress),
        ...changed,
      },
      stopping.signal,
    )
    let stopped: Promise<void> | undefined
    const stop = () =>
      (stopped ??= (async () => {
        stopping.abort()
        await running
        await egress.close()
      })())
    onTestFinished(stop)
    return { stop }
  }

  return {
    doubles,
    api,
    logged,
    startWorker,
    async createSink(type: SinkType, config: object = doubles[type].config): Promise<string> {
      const { status, body } = await api.send(createExport, { body: { type, config } })
      expect([type, status]).toEqual([type, 201])
      return (body as unknown as { export: Sink }).export.id
    },
    async readSink(id: string): Promise<Sink> {
      const { body } = await api.send(retrieveExport, { params: { export_id: id } })
      return (body as unknown as { export: Sink }).export
    },
    async write(count: number, name = 'x', { organizationId } = api.organization) {
      const events = Array.from({ length: count }, (_, at) =>
        buildRevisionEvent(
          {
            organizationId,
            by: operator,
            action: 'created',
            before: null,
            after: { id: `${name}${at}`, object: 'thing' },
          },
          new Date(),
        ),
      )
      await insertEvents(api.db, events)
      await numberAllEvents(api.db)
      return events
    },
    numbersOf: (type: SinkType) =>
      doubles[type].double.received.map((record) => Number(record['org_seq'])),
    idsOf: (type: SinkType) => doubles[type].double.received.map((record) => record['event_id']),
  }
}
export type TestDelivery = Awaited<ReturnType<typeof openDelivery>>
