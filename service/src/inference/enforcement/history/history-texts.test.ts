import { expect, test } from 'vitest'

import { joinParts } from '#text/passage.ts'
import { remoteGrid } from '#text/windows/window-grid.ts'

import { placeOf, toSegments } from './history-texts.ts'

test('the place of an earlier answer is that in the request, whatever the format', () => {
  const messages = [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'a' },
    { role: 'assistant', content: 'b' },
    { role: 'assistant', content: 'c' },
    { role: 'tool', content: 'd' },
    { role: 'assistant', content: 'e' },
    { role: 'user', content: 'f' },
  ]
  expect([0, 1, 2].map((number) => placeOf({ messages }, number))).toEqual([
    'messages[2]',
    'messages[5]',
    'messages',
  ])
  const input = [
    { role: 'user', content: 'a' },
    { type: 'reasoning', summary: [] },
    { type: 'function_call', name: 'f' },
    { type: 'function_call_output', output: 'd' },
    { role: 'assistant', content: 'e' },
    { role: 'user', content: 'f' },
  ]
  expect([0, 1].map((number) => placeOf({ input }, number))).toEqual(['input[1]', 'input[4]'])
})

test.each([
  { role: 'user', content: '' },
  { role: 'assistant', content: [{ type: 'text', text: '' }] },
  { role: 'system', content: [], output_config: { effort: 'low' } },
])('an answer goes on behind a message that says nothing: %j', (silent) => {
  const assistant = (content: string) => ({ role: 'assistant', content })
  const user = { role: 'user', content: 'a' }
  const messages = [user, assistant('b'), silent, assistant('c'), user, assistant('d'), user]
  expect([0, 1].map((number) => placeOf({ messages }, number))).toEqual([
    'messages[1]',
    'messages[5]',
  ])
})

test('a text that was sent as one is known by the windows in which answers are scored', () => {
  const text = 'word '.repeat(100).trim()
  const answer = { message: 1, question: [], said: [joinParts([text]), joinParts(['a', 'b'])] }
  const [whole, ...joined] = toSegments(answer)
  expect([...(whole?.windows?.(remoteGrid()) ?? [])].flat().length).toBeGreaterThan(1)
  expect(joined.map((each) => [each.text, each.windows])).toEqual([
    ['a\nb', undefined],
    ['ab', undefined],
  ])
})
