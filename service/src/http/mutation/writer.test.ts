import { expect, test } from 'vitest'

import { judgeWrite, ObjectWriter } from './writer.ts'

test.each([
  // managed by, set of the request, without and with take_over
  [null, null, 'allowed', 'allowed'],
  ['a', 'a', 'allowed', 'allowed'],
  ['a', null, 'refused', 'taken_over'],
  ['a', 'b', 'refused', 'taken_over'],
  [null, 'a', 'refused', 'taken_over'],
  ['a', 'A', 'refused', 'taken_over'],
] as const)('what %j manages, a request of %j changes: %s; with take_over: %s', (...row) => {
  const [managedBy, set, without, withIt] = row
  expect(judgeWrite(managedBy, { set, takesOver: false })).toBe(without)
  expect(judgeWrite(managedBy, { set, takesOver: true })).toBe(withIt)
})

const write = { set: 'a', takesOver: false }

test('an endpoint that is exempt is never refused, and takes nothing over', () => {
  for (const takesOver of [false, true]) {
    const writer = new ObjectWriter('exempt', { set: 'a', takesOver })
    expect([null, 'a', 'b'].map((managedBy) => writer.judge(managedBy))).toEqual(
      Array.from({ length: 3 }).fill('allowed'),
    )
  }
})

test.each(['create', 'change'] as const)(
  'an endpoint that is declared with "%s" and does not ask is not committed',
  (how) => {
    expect(() => new ObjectWriter(how, write).requireAsked()).toThrow('did not ask')
    const creating = new ObjectWriter(how, write)
    expect(creating.set).toBe('a')
    creating.requireAsked()
    const changing = new ObjectWriter(how, write)
    expect(changing.judge('b')).toBe('refused')
    changing.requireAsked()
  },
)

test('an endpoint that the contract does not declare must not change such objects', () => {
  const writer = new ObjectWriter(undefined, write)
  expect(() => writer.judge(null)).toThrow('the contract does not say')
  writer.requireAsked()
  new ObjectWriter('exempt', write).requireAsked()
})
