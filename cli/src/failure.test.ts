import { expect, test } from 'vitest'

import { CommandFailed, explainFailure } from './failure.ts'

test('an error that nobody expected is one sentence and whom to tell; its stack is shown on demand', () => {
  const bug = new CommandFailed(new TypeError('x is not a function'), [])
  const explained = explainFailure(bug, false)
  expect(explained).toMatch(/^x is not a function\nThat is unexpected\. .*GATEHOUSE_DEBUG=1/)
  expect(explained).not.toMatch(/^\s+at /m)
  expect(explainFailure(bug, true)).toMatch(/^\s+at .*failure\.test\.ts/m)
})

test('an error of the system explains itself', () => {
  const full = Object.assign(new Error('ENOSPC: no space left on device, write'), {
    syscall: 'write',
  })
  expect(explainFailure(full, false)).toBe('ENOSPC: no space left on device, write')
})
