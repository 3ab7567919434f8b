import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

import { expect, test } from 'vitest'

import { repositoryRoot } from './source-files.ts'

// Words that hide who acts, or what is counted. They are being replaced: these numbers may only fall.

const vague = /\b(?:whoever|somebody|nobody|so many|all the same)\b/gi

const left: Record<string, number> = {
  '.': 7,
  acceptance: 27,
  bench: 2,
  cli: 12,
  contract: 5,
  docs: 80,
  service: 12,
  'service/src/access': 4,
  'service/src/formats': 7,
  'service/src/gateway-config': 1,
  'service/src/inference': 27,
  'service/src/limits': 2,
  'service/src/moderation': 2,
  'service/src/platform': 8,
  'service/src/policies': 15,
  tools: 5,
}

/** The part of the repository that a file belongs to: a folder of the service, or one at the root. */
function partOf(path: string): string {
  const folder = dirname(path)
  const [first = '', second, third] = folder.split('/')
  if (first !== 'service' || second !== 'src') return first
  return ['service', 'src', third].filter(Boolean).join('/')
}

test('there are no more vague words than there were', () => {
  const listed = execFileSync('git', ['ls-files'], { cwd: repositoryRoot, encoding: 'utf8' })
  const paths = listed.split('\n').filter((path) => /\.(?:ts|md|sql|lua|txt)$/.test(path))
  const counts: Record<string, number> = {}
  for (const path of paths.filter((each) => each !== 'tools/plain-words.test.ts')) {
    const count = readFileSync(join(repositoryRoot, path), 'utf8').match(vague)?.length ?? 0
    if (count > 0) counts[partOf(path)] = (counts[partOf(path)] ?? 0) + count
  }
  expect(counts, 'Where there are fewer, lower the number in this test.').toEqual(left)
})
