import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { expect, onTestFinished, test } from 'vitest'

import { bareMachine } from './audit/testing/bare-machine.ts'
import {
  bundleLines,
  bundleText,
  createLog,
  createSigner,
  keysDocument,
  leafOf,
  type Members,
} from './audit/testing/signed-log.ts'
import { run } from './run.ts'

const signers = [createSigner(1), createSigner(2)]
const sizes = [1, 900, 1000, ...Array.from({ length: 150 }, (_, index) => 1001 + index * 10)]
const log = createLog('org_a', sizes, signers)
const newest = sizes.at(-1) ?? 0

const page = (items: { id: string }[], limit: number) => ({
  object: 'list',
  data: items.slice(0, limit),
  has_more: items.length > limit,
  first_id: items[0]?.id ?? null,
  last_id: items.slice(0, limit).at(-1)?.id ?? null,
})

/** What the service answers; records before `oldest` have been dropped. */
function answerTo({ url = '', headers }: IncomingMessage, oldest: number): [number, unknown] {
  const { pathname, searchParams } = new URL(url, 'http://service')
  if (pathname === '/.well-known/gatehouse-audit-keys.json') return [200, keysDocument(signers)]
  if (headers.authorization !== 'Bearer secret')
    return [401, { error: { code: 'invalid_api_key', message: 'No.' } }]
  const after = Number(searchParams.get('after') ?? 0)
  const limit = Number(searchParams.get('limit'))
  const numberOf = (one: Members) => one['org_seq'] as number
  if (pathname === '/v1/organization/audit_records' && limit <= 1000) {
    const left = log.records.filter((one) => numberOf(one) > after && numberOf(one) >= oldest)
    return [
      200,
      page(
        left.map((record) => ({
          id: String(record['org_seq']),
          leaf: leafOf(record).toString('hex'),
          record,
        })),
        limit,
      ),
    ]
  }
  if (pathname === '/v1/organization/audit_checkpoints' && limit <= 100) {
    const sorted =
      searchParams.get('order') === 'desc' ? log.checkpoints.toReversed() : log.checkpoints
    const left = sorted.filter(
      (one) => searchParams.get('order') === 'desc' || numberOf(one) > after,
    )
    return [
      200,
      page(
        left.map((one) => ({
          id: String(one['org_seq']),
          object: 'organization.audit_checkpoint',
          ...one,
        })),
        limit,
      ),
    ]
  }
  return [404, { error: { code: 'not_found', message: 'There is no such route.' } }]
}

/** A folder for the bundle, and the settings of a client of a service that has the log. */
async function prepare(oldest = 1) {
  const server = createServer((request, response) => {
    const [status, body] = answerTo(request, oldest)
    response.writeHead(status).end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-export-'))
  onTestFinished(() => {
    server.close()
    rmSync(folder, { recursive: true })
  })
  const environment = {
    GATEHOUSE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    GATEHOUSE_ADMIN_KEY: 'secret',
  }
  return { folder, environment }
}

async function exporting(flags: readonly string[], oldest = 1) {
  const { folder, environment } = await prepare(oldest)
  const out = join(folder, 'bundle.ndjson')
  const machine = { ...bareMachine, environment }
  const result = await run(['audit', 'export', '--out', out, ...flags], machine)
  const verified = existsSync(out)
    ? (await run(['audit', 'verify', out, '--json'], machine)).exitCode
    : null
  return { ...result, out, verified, left: readdirSync(folder) }
}

test('an export is the bundle of all records, and it verifies', async () => {
  const { exitCode, stdout, out, verified, left } = await exporting([])
  expect([exitCode, verified, left]).toEqual([0, 0, ['bundle.ndjson']])
  expect(stdout).toContain(`Wrote records 1 to ${newest}`)
  expect(readFileSync(out, 'utf8')).toBe(bundleText(bundleLines(log)))
})

test('./dev gatehouse names files as its caller does, from whatever folder', async () => {
  const { folder, environment } = await prepare()
  const dev = fileURLToPath(new URL('../../dev', import.meta.url))
  const options = { cwd: folder, env: { ...process.env, ...environment } }
  const gatehouse = (line: string) =>
    promisify(execFile)(dev, ['gatehouse', ...line.split(' ')], options)
  await gatehouse('audit export --out bundle.ndjson --to 1')
  expect(readdirSync(folder)).toEqual(['bundle.ndjson'])
  expect((await gatehouse('audit verify bundle.ndjson')).stdout).toMatch(
    /^Consistent: records 1 to 1 /,
  )
})

test('--from and --to take sizes of checkpoints', async () => {
  const { exitCode, out, verified } = await exporting(['--from', '900', '--to', '1011'])
  expect([exitCode, verified]).toEqual([0, 0])
  const end = sizes.indexOf(1011) + 1
  const part = {
    ...log,
    records: log.records.slice(0, 1011),
    checkpoints: log.checkpoints.slice(0, end),
  }
  expect(readFileSync(out, 'utf8')).toBe(bundleText(bundleLines(part, 900)))
})

test.each([
  [
    '--from between checkpoints',
    ['--from', '901'],
    1,
    'There is none of size 901; the next is 1000.',
  ],
  ['--from after --to', ['--from', '1000', '--to', '900'], 1, '--from 1000 is not before'],
  [
    'records that were dropped',
    [],
    950,
    'Record 950 is the oldest that the service still has. Use --from 1000.',
  ],
])('%s: the error says what to do, and no file is left', async (_, flags, oldest, message) => {
  const { exitCode, stderr, left } = await exporting(flags, oldest)
  expect([exitCode, stderr, left]).toEqual([2, expect.stringContaining(message), []])
})
