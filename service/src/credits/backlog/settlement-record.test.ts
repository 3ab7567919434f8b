import { expect, test } from 'vitest'

import { settlementOf } from '#testing/credit-calls.ts'

import { readSettlements, writeSettlements } from './settlement-record.ts'

// Files of a backlog outlive the release that wrote them.

/** As releases wrote it before events told of policies. */
const oldText = `[{"organizationId":"org_1","id":"req_1","amount":"330","meta":{"project_id":"proj_1","key_id":"key_1","model":"m","input_tokens":90,"output_tokens":4},"event":{"id":"0197a3b2-0000-7000-8000-000000000000","day":"2026-05-04","shard":3,"organizationId":"org_1","kind":"enforcement","at":"2026-05-04T10:11:12.013Z","header":{"request_id":"req_1","project_id":null,"actor":"key_1","model":"m","policy_target":"chat_completions","outcome":"refused","status":400,"code":"invalid_json"},"payload":"e30=","salt":"AAAAAAAAAAAAAAAAAAAAAA==","payloadHash":"q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s="},"isOnlyRecorded":true}]`

test('a file of an older release is read and written as it was', () => {
  const settlements = readSettlements(oldText)
  expect(settlements).toMatchObject([
    {
      amount: 330n,
      isOnlyRecorded: true,
      event: {
        at: new Date('2026-05-04T10:11:12.013Z'),
        header: { project_id: null, status: 400, policy_target: 'chat_completions' },
        payload: Buffer.from('{}'),
      },
    },
  ])
  expect(writeSettlements(settlements)).toBe(oldText)
})

test('a header with booleans and lists is read as it was written', () => {
  const settlement = settlementOf({ organizationId: 'org_1', id: 'req_1', amount: 5n })
  const header = {
    ...settlement.event.header,
    enforced: true,
    version: null,
    matches: [{ policy_id: 'pol_1', version: 3, direction: 'request', score: 10_000 }],
    policies_unevaluated: ['pol_2', 'pol_3'],
  }
  const written = [{ ...settlement, event: { ...settlement.event, header } }]
  expect(readSettlements(writeSettlements(written))).toEqual(written)
})

test('a header with anything else is refused', () => {
  const nested = oldText.replace('"model":"m","policy_target"', '"model":{"a":1},"policy_target"')
  expect(() => readSettlements(nested)).toThrow('header')
})
