import { expect, test } from 'vitest'

import { packOpaque } from '#inference/opaque.ts'
import type { ProtocolName } from '#inference/turn.ts'

import { chatCompletions } from './chat-completion-protocol.ts'

const upstream = { model: 'upstream-model', maxOutputTokens: 1000 }
const forward = (...messages: object[]) =>
  chatCompletions.forwardRequest({ model: 'ours', messages }, upstream)['messages']

const said = { role: 'assistant', content: 'Hi' }
const question = { role: 'user', content: 'Hello' }
const thought = (reasoning_signature: string) => ({
  ...said,
  reasoning_content: 'Hm.',
  reasoning_signature,
})
const sealed = (origin: ProtocolName) =>
  packOpaque({ origin, kind: 'signature', data: 'c2ln', id: null })

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
