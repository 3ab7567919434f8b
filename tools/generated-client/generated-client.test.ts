import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { endpoints } from '@gatehouse/contract/endpoints'
import { toOpenApi } from '@gatehouse/contract/openapi'
import openapiTS, { astToString } from 'openapi-typescript'
import { afterAll, beforeAll, expect, test } from 'vitest'

// What a user of the description gets: types that a common generator makes of it, and a program that uses them.

const root = fileURLToPath(new URL('../../', import.meta.url))
let folder = ''
let types = ''

beforeAll(async () => {
  await mkdir(join(root, '.scratch'), { recursive: true })
  folder = await mkdtemp(join(root, '.scratch/generated-client-'))
  const document = JSON.stringify(toOpenApi(endpoints))
  types = astToString(await openapiTS(document))
  await writeFile(join(folder, 'api.ts'), types)
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const head = `
import type { operations, paths } from './api.ts'

type Body<Id extends keyof operations> = operations[Id] extends {
  requestBody: { content: { 'application/json': infer Sent } }
} ? Sent : never
`

const program = `${head}
const message: Body<'createMessage'> = {
  model: 'example-large',
  messages: [{ role: 'user', content: 'Hello' }],
  max_tokens: 100,
}
const edit: Body<'updatePolicy'> = { revision: 3, mode: 'enforcing', match_threshold_basis_points: null }
const page: NonNullable<operations['listProjects']['parameters']['query']> = { limit: 5, order: 'desc' }
const call: operations['createProject']['parameters'] = { header: { 'Idempotency-Key': 'k1' } }

type Answers = operations['createMessage']['responses']
function read(answer: Answers[200]['content']['application/json']): number {
  return answer.usage.output_tokens + answer.estimated_credits_used + (answer.remaining_credits ?? 0)
}
const isStream = (answer: Answers[200]['content']['text/event-stream']) => answer.startsWith('event:')

/** Headers that are always there are no undefined. */
const waitSeconds = (headers: Answers[429]['headers']): number => headers['Retry-After']
const challenge = (headers: Answers[401]['headers']): string => headers['WWW-Authenticate']
const left = (headers: Answers[200]['headers']): number => headers['x-ratelimit-remaining-tokens']
const id = (headers: Answers[529]['headers']): string => headers['x-request-id'] + headers['request-id']

const reason = (answer: Answers[402]['content']['application/json']): string => answer.error.message
const code = (
  answer: operations['publishPolicy']['responses'][409]['content']['application/json'],
): string => answer.error.code
const violations = (
  answer: operations['countTokens']['responses'][422]['content']['application/json'],
): number => answer.detail.length
const secret = (
  answer: paths['/v1/organization/admin_api_keys']['post']['responses'][201]['content']['application/json'],
): string => answer.value

export const used = [
  message, edit, page, call, read, isStream, waitSeconds, challenge, left, id, reason, code, violations, secret,
]
`

/** What the compiler says about a program; empty when it compiles. */
async function compile(source: string): Promise<string> {
  const file = join(folder, 'program.ts')
  await writeFile(file, source)
  const options = ['--ignoreConfig', '--noEmit', '--strict', '--exactOptionalPropertyTypes']
  const modules = ['--module', 'nodenext', '--allowImportingTsExtensions', '--types', '']
  const tsc = join(root, 'node_modules/.bin/tsc')
  return promisify(execFile)(tsc, [...options, ...modules, file], { cwd: folder }).then(
    () => '',
    (error: { stdout?: string; stderr?: string; message: string }) =>
      error.stdout || error.stderr || error.message,
  )
}

test('the generated types name every operation', () => {
  for (const { id } of endpoints) expect(types).toContain(`operations["${id}"]`)
})

test('a program that uses the generated types compiles', async () => {
  expect(await compile(program)).toBe('')
})

test.each([
  ['a body without its required members', "const x: Body<'createMessage'> = { model: 'm' }"],
  ['an unknown member', "const x: Body<'createProject'> = { name: 'x', colour: 'red' }"],
  [
    'a status that is never answered',
    "type X = operations['readLimits']['responses'][402]; const x = 1 as unknown as X",
  ],
  [
    'a header that may be missing, taken as if it were always there',
    "const x = (headers: operations['createMessage']['responses'][403]['headers']): string => headers['WWW-Authenticate']",
  ],
])('a program with %s does not compile', async (_, line) => {
  expect(await compile(`${head}\n${line}\nexport const used = [x]`)).toMatch(/error TS/)
})
