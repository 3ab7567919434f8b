import { expect, test } from 'vitest'

import { createCodeGuesses } from './code-guesses.ts'

const minuteMs = 60_000

function start() {
  let nowMs = 0
  let refused = 0
  const now = () => new Date(nowMs)
  const guesses = createCodeGuesses({ now, steadyNow: now, onRefused: () => refused++ })
  const who = (session: string, address = session, organization = session) => ({
    session,
    address,
    organization,
  })
  const guess = (...names: [string, string?, string?]) => {
    try {
      return guesses.take(who(...names))
    } catch {
      return null
    }
  }
  return { guess, pass: (ms: number) => void (nowMs += ms), refused: () => refused, guesses, who }
}

test('a session has ten wrong codes in ten minutes, whatever its address', () => {
  const { guess, pass, refused, guesses, who } = start()
  for (let wrong = 0; wrong < 10; wrong++) expect(guess('a', `${wrong}`, `${wrong}`)).not.toBeNull()
  expect(guess('a', 'x', 'x')).toBeNull()
  expect(guess('b', 'x', 'x')).not.toBeNull()
  expect(refused()).toBe(1)
  expect(() => guesses.take(who('a'))).toThrow('wrong codes')
  pass(10 * minuteMs)
  expect(guess('a')).not.toBeNull()
})

test('an address has thirty and an organization a hundred, of all sessions together', () => {
  const { guess } = start()
  const tried = Array.from({ length: 50 }, (_, index) => guess(`s${index}`, 'one', `o${index}`))
  expect(tried.filter((each) => each !== null)).toHaveLength(30)
  const others = Array.from({ length: 200 }, (_, index) => guess(`t${index}`, `a${index}`, 'one'))
  expect(others.filter((each) => each !== null)).toHaveLength(100)
})

test('right codes do not count', () => {
  const { guess } = start()
  for (let right = 0; right < 100; right++) guess('a')?.()
  expect(guess('a')).not.toBeNull()
})
