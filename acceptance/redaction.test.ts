import { createClient } from '@gatehouse/contract/client'
import { readGatewayRollout, saveGatewayConfig } from '@gatehouse/contract/policy-gateway/gateway'
import {
  type CallerId,
  callers,
  type FormatId,
  formats,
  modes,
  type Place,
} from '@gatehouse/tools/compatibility'
import { hiddenScript } from '@gatehouse/tools/scripted-upstream/script'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { beforeAll, expect, test } from 'vitest'

import { matrixModels, openCell } from './support/sdk/cell.ts'
import { useStack } from './support/use-stack.ts'

// Published clients understand answers that are redacted, and no provider is sent what was.

const places: Place[] = (Object.keys(callers) as CallerId[]).flatMap((caller) =>
  (Object.keys(formats) as FormatId[]).flatMap((format) =>
    modes.map((mode) => ({ caller, format, mode })),
  ),
)
const stack = useStack({ models: matrixModels(places), paidUsd: '5000' })

beforeAll(async () => {
  const { base_url: baseUrl, admin_key: credential } = stack().description
  const client = createClient({ baseUrl, credential })
  const { revision } = await client.call(saveGatewayConfig, {
    body: { config: { rules: { redact: true } } },
  })
  await waitUntil(async () => {
    const rollout = await client.call(readGatewayRollout, {})
    return rollout.revision === revision && rollout.is_applied
  })
})

const [mail, card] = ['jane@example.com', '4111 1111 1111 1111']

test.each(places)('$caller, upstream of $format, $mode', async (place) => {
  const { base_url: baseUrl, upstream_url: upstreamUrl, project_key: key } = stack().description
  const cell = openCell('conversation', place, { baseUrl, upstreamUrl, key })
  const conversation = cell.open()
  const script = hiddenScript({ text: `To ${mail}, or with ${card}.` })
  const first = await conversation.sendMessage(`${cell.prompt()} I am ${mail}.\n${script}`)
  expect(first.text).toBe('To [EMAIL_1], or with [CARD_1].')
  const second = await conversation.sendMessage(`I said ${mail}.\n${script}`)
  expect(second.text).toBe('To [EMAIL_1], or with [CARD_1].')
  const { body } = await cell.seen()
  expect(JSON.stringify([body, first.raw, second.raw])).not.toContain(mail)
  expect(JSON.stringify(body)).toContain('I said [EMAIL_1].')
})
