import { readFile } from 'node:fs/promises'

import { expect, test } from 'vitest'

import { checks } from './checks.ts'

const drawing = new URL('../../../../docs/images/table-of-checks.svg', import.meta.url)
const stages = ['find', 'beforeHold', 'afterHold', 'addEndings'] as const

test('the drawing of the table has every check in its order, with its stages and no other', async () => {
  const [, ...rows] = (await readFile(drawing, 'utf8')).split('<g class="row" data-check="')
  const drawn = rows.map((row) => ({
    name: row.slice(0, row.indexOf('"')),
    stages: [...row.matchAll(/<g data-stage="(\w+)"/g)].map(([, stage]) => stage),
  }))
  const made = checks.map((check) => ({
    name: check.name,
    stages: stages.filter((stage) => check[stage]),
  }))
  expect(drawn).toEqual(made)
})
