import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

import { expect, test } from 'vitest'

import { loadModel } from './load-model.ts'
import { hasMinorTerm } from './minor-terms.ts'
import { readText } from './read-text.ts'
import { countTerms } from './term-count.ts'

// No text of the category sexual/minors may be in the repository, in whatever file. What is found is told by file and line.

const root = fileURLToPath(new URL('../../../../', import.meta.url))
const { terms } = loadModel()

/** Plain words for the subject, which the list of profanities does not have. */
const plainWords =
  /\b(?:sex|sexual|sexually|sexualized|nude|nudes|naked|erotic|erotica|porn|pornographic)\b/

/** Names of categories and of what the scorer counts are no text. Put together here, so that this file passes too. */
const subject = 'sexual'
const names = [
  String.raw`${subject}[/-]minors`,
  String.raw`['"\x60]${subject}['"\x60]`,
  String.raw`\b${subject} (?:terms?|scores?|one)\b`,
  String.raw`\bminor[- ]terms?\b`,
]
const label = new RegExp(names.join('|'), 'gi')

function isForbidden(original: string): boolean {
  const { text, bounds } = readText(original.replaceAll(label, ' '))
  return (
    (plainWords.test(text) || countTerms(terms, text, bounds) > 0) && hasMinorTerm(text, bounds)
  )
}

/** Sentences may go over line breaks, so each line is looked at together with the next. */
function forbiddenLines(content: string): number[] {
  const lines = content.split('\n')
  return lines.flatMap((line, index) => {
    const near = `${line} ${lines[index + 1] ?? ''}`
    return near.split(/(?<=[.!?;])\s/).some(isForbidden) ? [index + 1] : []
  })
}

test('no tracked file has a sexual term and a term for a minor in one sentence', () => {
  const files = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' })
    .split('\0')
    .filter((path) => path !== '' && path !== 'pnpm-lock.yaml' && !path.endsWith('.bin'))
  expect(files.length).toBeGreaterThan(500)
  const found = files.flatMap((path) =>
    forbiddenLines(readFileSync(`${root}${path}`, 'utf8')).map((line) => `${path}:${line}`),
  )
  expect(found).toEqual([])
})

test('the scan finds what it looks for, and only within a sentence', () => {
  // Built from parts, so that this file does not have what it forbids.
  const word = ['se', 'xual'].join('')
  expect(forbiddenLines(`one ${word}\nchild two`)).toEqual([1])
  expect(forbiddenLines(`one ${word}. Two child.`)).toEqual([])
  expect(forbiddenLines('one child two\nthree')).toEqual([])
  expect(forbiddenLines('`sexual/minors`: a child')).toEqual([])
})
