import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { listSourceFiles, repositoryRoot } from './source-files.ts'

// Alarms and searches match the code of a log line, so a code is a word, not a sentence.

const direct = /\blog\s*\??\.(?:problem|event)\(\s*(['"`])(.*?)\1/gs
const throttle = /\bconst (\w+) = createLogThrottle\(/g
const snakeCase = /^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/

/** The first argument of every call that logs a problem or an event, where it is a literal. */
function findCodes(text: string): string[] {
  const throttled = [...text.matchAll(throttle)].map(
    ([, name]) => new RegExp(`\\b${name}\\(\\s*(['"\`])(.*?)\\1`, 'gs'),
  )
  return [direct, ...throttled].flatMap((pattern) =>
    [...text.matchAll(pattern)].map(([, , code = '']) => code),
  )
}

/** The variable part of a template must be snake_case at run time too, which is not checked here. */
const isCode = (code: string) => snakeCase.test(code.replaceAll(/\$\{[^}]*\}/g, 'x'))

test('the code of every log line is in snake_case', async () => {
  const paths = (await listSourceFiles()).filter((path) => path.startsWith('service/src/'))
  const wrong: string[] = []
  let count = 0
  for (const path of paths) {
    const codes = findCodes(await readFile(join(repositoryRoot, path), 'utf8'))
    count += codes.length
    wrong.push(...codes.filter((code) => !isCode(code)).map((code) => `${path}: ${code}`))
  }
  expect(count).toBeGreaterThan(25)
  expect(wrong).toEqual([])
})

test.each([
  ["log.problem('a sentence', error)", ['a sentence']],
  ["house.log.event('listening', {})", ['listening']],
  ["options.log.problem(\n  'known_keys_unreadable',\n  error)", ['known_keys_unreadable']],
  ['log.problem(`${name}_not_stopped`, error)', ['${name}_not_stopped']],
  ["const warn = createLogThrottle(deps)\nwarn('redis_away', error)", ['redis_away']],
  ['log.problem(error.code, error)', []],
])('case %#: the codes of log lines that are found in a text', (text, codes) => {
  expect(findCodes(text)).toEqual(codes)
})
