import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { runEach } from './run-each.ts'

const printed = vi.spyOn(console, 'error')
beforeEach(() => void printed.mockImplementation(() => undefined))
afterEach(() => void printed.mockReset())

const attempt = async (name: string) => {
  if (name === 'paced') throw new Error('no frames arrived')
  return name === 'cpu' ? { plainCpu: { value: 3 } } : { idleStreams: { value: 70 } }
}

test('a section that fails is named with its reason, and the others are measured', async () => {
  const result = await runEach(['cpu', 'paced', 'idle'], { attempt, isInterrupted: () => false })
  expect(result).toEqual({
    figures: { plainCpu: { value: 3 }, idleStreams: { value: 70 } },
    failed: ['paced'],
  })
  expect(printed).toHaveBeenCalledExactlyOnceWith(
    expect.stringMatching(/section paced failed: no frames arrived$/),
  )
})

test('a run that is interrupted ends with the section that was running', async () => {
  const measured: string[] = []
  const noting = (name: string) => {
    measured.push(name)
    return attempt(name)
  }
  const running = runEach(['paced', 'idle'], { attempt: noting, isInterrupted: () => true })
  await expect(running).rejects.toThrow('The run was interrupted.')
  expect(measured).toEqual(['paced'])
})
