import { GivenGatewayConfig } from '@gatehouse/contract/policy-gateway/config'
import { expect, test } from 'vitest'

import { compileGateway } from '#gateway-config/compile-gateway.ts'
import { ApiError } from '#platform/api-error.ts'
import { finish } from '#platform/steps/steps.ts'
import { makeSnapshot } from '#policies-in-force/snapshot.ts'

import type { ToEvent } from './call-event.ts'
import { createCallRecords, type RecordRefusal } from './record-call.ts'

function gatewayWith(audit_logs: boolean) {
  const config = GivenGatewayConfig.parse({ org_controls: { audit_logs } })
  const sampling = { samplingRevision: 1, samplingKey: '', rolledBackUntil: null }
  const stored = { revision: 1, sha256: '', ...sampling, config }
  return finish(compileGateway(stored))
}

test.each([
  ['without a configuration', null, false],
  ['with audit_logs', gatewayWith(true), false],
  ['without audit_logs', gatewayWith(false), true],
])('%s a refusal waits for its event: %o', async (_, gateway, isAnsweredBefore) => {
  const writing = Promise.withResolvers<void>()
  let begun = 0
  const write = () => {
    begun++
    return writing.promise
  }
  const { recordRefusal } = createCallRecords({ write }, (() => ({})) as unknown as ToEvent)
  const policies = { snapshot: makeSnapshot('org', 1, [], { gateway }), isStale: false }
  const call = { policies, model: null } as unknown as Parameters<RecordRefusal>[0]
  let isAnswered = false
  const recorded = recordRefusal(call, new ApiError('policy_blocked', 'No.'), null).then(() => {
    isAnswered = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  expect([begun, isAnswered]).toEqual([1, isAnsweredBefore])
  writing.resolve()
  await recorded
})
