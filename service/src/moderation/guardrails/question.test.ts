import { expect, test } from 'vitest'

import { writeGuardrailQuestion } from './question.ts'

test('what is new is counted in code points', () => {
  const body = writeGuardrailQuestion({
    id: 'grq_1',
    direction: 'response',
    organizationId: 'org_1',
    projectId: 'proj_1',
    requestId: 'req_1',
    model: 'm',
    isLast: false,
    texts: [
      { role: 'assistant', text: '😀😀 old new', newFrom: '😀😀 old'.length },
      { role: 'assistant', text: 'all' },
    ],
  })
  expect(JSON.parse(body)).toMatchObject({
    direction: 'response',
    is_last: false,
    texts: [
      { index: 0, role: 'assistant', text: '😀😀 old new', new_from: 6 },
      { index: 1, role: 'assistant', text: 'all', new_from: 0 },
    ],
  })
})
