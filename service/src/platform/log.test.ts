import { durationRatio } from '@gatehouse/tools/testing/duration-ratio'
import fc from 'fast-check'
import { expect, test } from 'vitest'

import { createLog, type LogLevel, type RequestLine, withoutSecrets } from './log.ts'

const key = 'gate_adm_Canary7Q2mXcanary7Q2mXcanary7Q2mXcanary7Q2mX1BVBOF'
const token = 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.canary-signature_7Q2mX'
const password = 'canary7Q2mX'

test.each([
  [`key ${key} is bad`, 'key gate_adm_[removed] is bad'],
  [`"${key}"`, '"gate_adm_[removed]"'],
  [key.replace('adm', 'prj'), 'gate_prj_[removed]'],
  [key.replace('adm', 'ses'), 'gate_ses_[removed]'],
  [`${key},${key}`, 'gate_adm_[removed],gate_adm_[removed]'],
  [key.slice(0, 30), 'gate_adm_[removed]'], // most of a key is a secret too
  [`x=${token};`, 'x=[removed token];'],
  ['Authorization: Bearer canary7Q2mX', 'Authorization: Bearer [removed]'],
  ['authorization: bearer  canary7Q2mX==', 'authorization: bearer [removed]'],
  ['"Basic dXNlcjpjYW5hcnk="', '"Basic [removed]"'],
  [`postgres://user:${password}@db:5432/x`, 'postgres://user:[removed]@db:5432/x'],
  [`redis://:${password}@cache`, 'redis://:[removed]@cache'],
  ['such as postgres://user:<password>@host/x', 'such as postgres://user:<password>@host/x'],
  [`postgres://u:<password>@${password}@db/x`, 'postgres://u:[removed]@db/x'],
  [`to postgres://u:p@${password}@db/x failed`, 'to postgres://u:[removed]@db/x failed'],
  [`postgres://user@server:${password}@db/x`, 'postgres://user@server:[removed]@db/x'],
  [`a://b:${password}@c d://e:${password}@f`, 'a://b:[removed]@c d://e:[removed]@f'],
  [`https://u:${'%2F'.repeat(300)}${password}@h/`, 'https://u:[removed]@h/'],
])('case %#: a secret is cut out, the rest stays', (text, cleaned) => {
  expect(withoutSecrets(text)).toBe(cleaned)
})

test.each([
  'connect ECONNREFUSED 127.0.0.1:5432',
  'https://docs.example:8443/a@b',
  'http://[::1]:8080/x',
  'duplicate key value violates unique constraint "api_key_pkey"',
  'gate_adm_Zz...RU98', // the redacted form is meant to be read
  'No project with the id proj_0123456789abcdefghjkmnpq',
  '',
])('a text without secrets stays as it is: %s', (text) => {
  expect(withoutSecrets(text)).toBe(text)
})

test('a secret is found wherever it stands in a text, also where the text is cut', () => {
  const secret = fc.constantFrom(
    key,
    token,
    `postgres://user:${password}@db`,
    `Bearer ${password}${password}`,
  )
  const around = fc.string({ unit: fc.constantFrom(' ', 'a', ':', '"', '\n'), maxLength: 20 })
  const offset = fc.oneof(fc.integer({ min: 3850, max: 4010 }), fc.integer({ min: 0, max: 10 }))
  fc.assert(
    fc.property(secret, around, offset, (text, end, length) => {
      const cleaned = withoutSecrets(`${'- '.repeat(length / 2)}"${text}" ${end}`)
      expect(cleaned).not.toMatch(/canary|7Q2mX|Y2FuYXJ5|eyJzdWIi/i)
    }),
    { numRuns: 500 },
  )
})

test('a very long text is cut, and costs little', async () => {
  for (const unit of ['a', 'eyJ', 'bearer ', '://a:', 'gate_adm_', 'a://b:c@']) {
    const word = unit.repeat(3900 / unit.length)
    const text = `${word} `.repeat(300)
    const ratio = await durationRatio(unit, {
      work: () => expect(withoutSecrets(text).length).toBeLessThan(20_000),
      baseline: () => expect(compareAllPairs(word)).toBeGreaterThan(0),
      limit: 5,
    })
    expect(ratio).toBeLessThan(5)
  }
})

/** A plain quadratic loop over the part of a text that is looked at. */
function compareAllPairs(text: string): number {
  let equal = 0
  for (let one = 0; one < text.length; one++) {
    for (let other = 0; other < text.length; other++) {
      if (text.codePointAt(one) === text.codePointAt(other)) equal++
    }
  }
  return equal
}

function collect(level: LogLevel = 'info') {
  const lines: string[] = []
  const log = createLog(level, { write: (line) => void lines.push(line) })
  const only = () => JSON.parse(lines.join('')) as Record<string, unknown>
  return { log, lines, only }
}

test('a problem has name, code, message and stack of the error and of its causes', () => {
  const { log, only } = collect()
  const root = Object.assign(new TypeError('deep'), { code: 'EDEEP' })
  log.problem('doing it', new Error('outer', { cause: root }), 'req_1')
  expect(only()).toMatchObject({
    event: 'problem',
    what: 'doing it',
    request_id: 'req_1',
    error: 'Error',
    message: 'outer',
    stack: expect.stringContaining('log.test.ts'),
    cause: { error: 'TypeError', code: 'EDEEP', message: 'deep' },
  })
})

test('no member of an error or of its causes brings a canary into the log', () => {
  const canaries = [key, token, `bearer ${password}`, `redis://:${password}@cache`]
  const link = fc.record({
    canary: fc.constantFrom(...canaries),
    place: fc.constantFrom('message', 'code', 'detail', 'stack', 'thrown', 'line'),
  })
  fc.assert(
    fc.property(fc.array(link, { minLength: 1, maxLength: 6 }), (links) => {
      const { log, lines } = collect()
      log.problem('x', links.reduceRight<unknown>(troubled, undefined))
      expect(lines.join('')).not.toMatch(/canary|7Q2mX|eyJzdWIi/i)
    }),
  )
})

function troubled(cause: unknown, { canary, place }: { canary: string; place: string }): unknown {
  if (place === 'thrown') return { canary, cause }
  const message = { message: canary, line: `first\nsecond ${canary}` }[place] ?? 'plain'
  return Object.assign(new Error(message, { cause }), {
    ...(place === 'code' && { code: canary }),
    ...(place === 'detail' && { detail: canary, headers: { authorization: canary } }),
    ...(place === 'stack' && { stack: `Error: x\n    at ${canary} (file.ts:1:1)` }),
  })
}

test.each([['text'], [null], [undefined], [{ message: 'text' }], [7]])(
  'a thrown value that is no Error is not logged: %j',
  (thrown) => {
    const { log, lines, only } = collect()
    log.problem('doing it', thrown)
    expect(only()).toMatchObject({ error: 'not an error object' })
    expect(lines.join('')).not.toContain('text')
  },
)

test('an error that causes itself is described and does not hang', () => {
  const { log, lines } = collect()
  const error = new Error('round')
  error.cause = error
  log.problem('x', error)
  expect(lines.join('').split('round').length - 1).toBe(4)
})

const line: Required<RequestLine> = {
  request_id: 'req_1',
  client_request_id: 'mine',
  method: 'GET',
  route: '/v1/organization/projects/:project_id',
  status: 200,
  duration_ms: 1.5,
  outcome: 'answered',
  code: 'invalid_json',
  credential_kind: 'admin_key',
  credential_id: 'key_1',
  organization_id: 'org_1',
  project_id: 'proj_1',
  replayed: true,
  model: 'small',
  upstream: 'first',
  input_tokens: 12,
  output_tokens: 34,
}

test('a request is one line with its fields, a level, a time and nothing else', () => {
  const { log, lines, only } = collect()
  log.request(line)
  expect(lines.length).toBe(1)
  expect(only()).toStrictEqual({ level: 30, time: expect.any(String), event: 'request', ...line })
})

test.each([
  ['info', 3],
  ['warn', 1],
  ['error', 1],
  ['silent', 0],
] as const)('at the level %s, %i of three lines are written', (level, count) => {
  const { log, lines } = collect(level)
  log.request(line)
  log.event('started', { port: 80 })
  log.problem('x', new Error('y'))
  expect(lines.length).toBe(count)
})

test('members beyond the allow list are not logged, and a key in a field is removed', () => {
  const { log, only } = collect()
  const careless = { ...line, client_request_id: key, authorization: 'canary', body: { a: 1 } }
  log.request(careless)
  expect(Object.keys(only())).not.toContain('authorization')
  expect(JSON.stringify(only())).not.toContain('anary')
})
