import { createChatCompletion } from '@gatehouse/contract/chat-completion'
import { countTokens } from '@gatehouse/contract/count-tokens'
import type { Endpoint } from '@gatehouse/contract/endpoint'
import { endpoints } from '@gatehouse/contract/endpoints'
import { createMessage } from '@gatehouse/contract/message'
import { expect, test } from 'vitest'

import { asksForFreeRequest } from './free-tier-header.ts'

const all: readonly Endpoint[] = endpoints

test('exactly two endpoints take free requests', () => {
  const ids = all.filter(({ takesFreeRequests }) => takesFreeRequests).map(({ id }) => id)
  expect(ids).toEqual(['createMessage', 'createResponse'])
})

test.each(['true', 'TRUE', 'True'])('%s asks for it', (value) => {
  expect(asksForFreeRequest(createMessage, { headers: { 'x-free-tier': value } })).toBe(true)
})

test.each(['', 'false', '1', 'yes', 'true, true', 'true,', ' true', 'tru\u0065\u0301'])(
  'case %#: any other value is refused',
  (value) => {
    const ask = () => asksForFreeRequest(createMessage, { headers: { 'x-free-tier': value } })
    expect(ask).toThrow(
      expect.objectContaining({ code: 'invalid_request', param: 'header.x-free-tier' }),
    )
  },
)

test('without the header no free request is asked for', () => {
  expect(asksForFreeRequest(createMessage, { headers: {} })).toBe(false)
})

test.each([
  ...['Bearer gate_prj_x', 'Basic abc', ''].map((authorization) => ({ authorization })),
  ...['gate_prj_x', ''].map((key) => ({ 'x-api-key': key })),
])('case %#: with a credential, good or bad, the header means nothing', (credential) => {
  for (const value of ['true', 'nonsense']) {
    const headers = { ...credential, 'x-free-tier': value }
    expect(asksForFreeRequest(createMessage, { headers })).toBe(false)
  }
})

const others: Endpoint[] = [createChatCompletion, countTokens]
test.each(others)('$id ignores the header', (endpoint) => {
  for (const value of ['true', 'nonsense']) {
    expect(asksForFreeRequest(endpoint, { headers: { 'x-free-tier': value } })).toBe(false)
  }
})
