import { expect, test } from 'vitest'

import { StreamedAnswer } from './streamed-answer.ts'

const arrive = (answer: StreamedAnswer, ...texts: string[]) => {
  for (const text of texts) answer.onBytes(Buffer.from(text))
}

test('a reader that waits wakes once for all that arrives in one turn', async () => {
  const answer = new StreamedAnswer()
  let wakes = 0
  const reading = (async () => {
    await answer.head()
    wakes++
    return answer.take()?.toString()
  })()
  answer.onHead(200, {})
  arrive(answer, 'one ', 'two ', 'three')
  expect(await reading).toBe('one two three')
  expect([wakes, answer.take(), answer.isRead]).toEqual([1, undefined, false])
})

test('what came as one chunk is not copied', () => {
  const answer = new StreamedAnswer()
  const bytes = Buffer.from('one')
  answer.onBytes(bytes)
  expect(answer.take()).toBe(bytes)
})

test('an answer is read when it has ended and everything was taken', async () => {
  const answer = new StreamedAnswer()
  answer.onHead(200, {})
  arrive(answer, 'rest')
  answer.onEnd()
  expect(answer.isRead).toBe(false)
  expect(answer.take()?.toString()).toBe('rest')
  expect([answer.take(), answer.isRead]).toEqual([undefined, true])
})

test('a failure is thrown after what arrived before it, again and again', async () => {
  const answer = new StreamedAnswer()
  answer.onHead(200, {})
  arrive(answer, 'some')
  const waiting = answer.arrival()
  answer.onFailure(new Error('broken'))
  await waiting
  expect(answer.take()?.toString()).toBe('some')
  expect(() => answer.take()).toThrow('broken')
  expect(() => answer.take()).toThrow('broken')
})

test('a failure before the head rejects the promise of the head', async () => {
  const answer = new StreamedAnswer()
  const head = answer.head()
  answer.onFailure(new Error('refused'))
  await expect(head).rejects.toThrow('refused')
  await expect(answer.head()).rejects.toThrow('refused')
})
