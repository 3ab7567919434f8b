import { expect, test } from 'vitest'

import { commands } from './command.ts'
import { listColumns } from './output/list-columns.ts'

test('columns are chosen for every list, and for operations that there are', () => {
  const operations = commands.map(({ operationId }) => operationId)
  for (const operation of Object.keys(listColumns)) expect(operations).toContain(operation)
  const lists = operations.filter((name) => name.startsWith('list'))
  for (const operation of lists) expect(Object.keys(listColumns)).toContain(operation)
})
