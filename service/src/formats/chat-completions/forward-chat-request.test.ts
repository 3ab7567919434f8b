import { expect, test } from 'vitest'

import type { UpstreamFormatName } from '#formats/format-name.ts'
import { packOpaqueState } from '#formats/opaque-state.ts'

import { chatCallerFormat, chatUpstreamFormat } from './chat-completion-format.ts'

const upstream = {
  model: 'upstream-model',
  maxOutputTokens: 1000,
  outputLimitMember: 'max_completion_tokens',
} as const
const forward = (...messages: object[]) =>
  chatUpstreamFormat.forwardRequest({ model: 'ours', messages }, upstream)['messages']

const said = { role: 'assistant', content: 'Hi' }
const question = { role: 'user', content: 'Hello' }
const thought = (reasoning_signature: string) => ({
  ...said,
  reasoning_content: 'Hm.',
  reasoning_signature,
})
const sealed = (origin: UpstreamFormatName) =>
  packOpaqueState({ origin, kind: 'signature', data: 'c2ln', id: null })

test('what another format’s model thought is not forwarded', () => {
  expect(forward(question, thought(sealed('messages')))).toEqual([question, said])
  expect(forward(question, thought(`${sealed('responses')} ${sealed('responses')}@3`))).toEqual([
    question,
    said,
  ])
})

test('what the upstream’s own model thought is forwarded as it came', () => {
  const own = thought('its-own-signature')
  const bare = { ...said, reasoning_content: 'Hm.' }
  expect(forward(question, own, bare)).toEqual([question, own, bare])
})

const forwarded = (request: object, member = upstream) =>
  chatUpstreamFormat.forwardRequest({ model: 'ours', messages: [question], ...request }, member)

test('the upstream is not asked to keep anything', () => {
  expect(forwarded({ store: true })).toMatchObject({ store: false })
  expect(forwarded({})).not.toHaveProperty('store')
})

test('the bound has the names that the caller gave, or else the one that the upstream knows', () => {
  const older = { ...upstream, outputLimitMember: 'max_tokens' } as never
  const limits = ({ max_tokens, max_completion_tokens }: Record<string, unknown>) => [
    max_tokens,
    max_completion_tokens,
  ]
  expect(limits(forwarded({}))).toEqual([undefined, 1000])
  expect(limits(forwarded({}, older))).toEqual([1000, undefined])
  expect(limits(forwarded({ max_completion_tokens: 5 }, older))).toEqual([undefined, 5])
  const both = { max_tokens: 5, max_completion_tokens: 9000 }
  expect(limits(forwarded(both, older))).toEqual([5, 1000])
  const turn = chatCallerFormat.readTurn({ messages: [question] })
  expect(limits(chatUpstreamFormat.writeRequest(turn, older))).toEqual([1000, undefined])
})
