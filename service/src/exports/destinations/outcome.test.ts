import { expect, test } from 'vitest'

import { outcomeOfAnswer } from './outcome.ts'

test('what is quoted is one line that PostgreSQL can store', () => {
  const answer = { status: 500, headers: {}, body: Buffer.alloc(0) }
  const { error } = outcomeOfAnswer(answer, `a\u0000b\n\u001b[31mc${'😀'.repeat(200)}`) as {
    error: string
  }
  expect(error).toMatch(/^The destination answered 500: a b \[31mc/)
  expect(error).not.toMatch(/\p{Cc}/u)
  expect(error.isWellFormed()).toBe(true)
  expect(error.length).toBeLessThan(400)
})
