import { readFile } from 'node:fs/promises'

import {
  callers,
  clientPackages,
  featureIds,
  formats,
  modes,
  notes,
} from '@gatehouse/tools/compatibility'
import { toCompatibilityPage } from '@gatehouse/tools/compatibility-page'
import { expect, test } from 'vitest'

const page = await toCompatibilityPage()
const tables = page.split(/^## /m).filter((section) => section.includes('\n| Feature |'))
const cellsOf = (row: string) => row.split('|').slice(1, -1)

test('the page in docs is the one generated from the table', async () => {
  const file = new URL('../docs/compatibility.md', import.meta.url)
  expect(await readFile(file, 'utf8')).toBe(page)
})

test('every client has a table without empty cells', () => {
  expect(tables).toHaveLength(Object.keys(callers).length)
  const columns = 1 + Object.keys(formats).length * modes.length
  for (const table of tables) {
    const rows = table.split('\n').filter((line) => line.startsWith('| '))
    expect(rows).toHaveLength(featureIds.length + 2)
    for (const row of rows) {
      expect(cellsOf(row)).toHaveLength(columns)
      expect(cellsOf(row).filter((cell) => cell.trim() === '')).toEqual([])
    }
  }
})

test('the page names the releases that are installed, of two majors in a row', async () => {
  for (const [name, previous] of Object.entries(clientPackages)) {
    const [newest, before] = await Promise.all([name, previous].map(readVersion))
    expect(page).toContain(`| \`${name}\` | ${newest} | ${before} |`)
    expect(Number(before?.split('.')[0])).toBe(Number(newest?.split('.')[0]) - 1)
  }
})

async function readVersion(name: string): Promise<string> {
  const file = new URL(`node_modules/${name}/package.json`, import.meta.url)
  return (JSON.parse(await readFile(file, 'utf8')) as { version: string }).version
}

test('every number in a cell has a note, and every note is used', () => {
  const cells = tables.flatMap((table) => table.split('\n').flatMap((row) => cellsOf(row).slice(1)))
  const used = new Set(cells.map((cell) => cell.trim()).filter((cell) => /^\d+$/.test(cell)))
  const listed = [...page.matchAll(/^(\d+)\. (.+)$/gm)]
  expect(used).toEqual(new Set(listed.map(([, number]) => number)))
  expect(new Set(listed.map(([, , text]) => text))).toEqual(new Set(Object.values(notes)))
})
