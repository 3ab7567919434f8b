import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'

import { programFile } from '@gatehouse/tools/program'
import { startDatabaseTap } from '@gatehouse/tools/testing/database-tap'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { useStack } from './support/use-stack.ts'

// The operator's command is killed before every statement of a change of one of two owners. The change is there or it is not,
// and an active owner is left, also when the command for the other owner follows.

const stack = useStack({ models: null })

let database: pg.Client
beforeAll(async () => {
  database = new pg.Client({ connectionString: stack().database.url })
  await database.connect()
})
afterAll(() => database.end())

const run = (args: readonly string[], url: string) => {
  const { organization_id: id } = stack().description
  const [command = '', ...flags] = args
  const words = [programFile('gatehouse'), 'operator', 'members', command, id, ...flags]
  const env = { ...stack().service, DATABASE_URL: url }
  return spawn(process.execPath, words, { env, stdio: 'ignore' })
}

async function ended(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode
  const [code] = (await once(child, 'exit')) as [number | null]
  return code
}

const emails = ['ada@example.com', 'bob@example.com']

async function prepareOwners() {
  const { organization_id: id } = stack().description
  await database.query('delete from member')
  await database.query(
    `insert into member (organization_id, id, email, name, role, status, created_at)
     select $1, 'mem_' || email, email, 'x', 'owner', 'active', now() from unnest($2::text[]) as email`,
    [id, emails],
  )
}

async function readState() {
  const text = `select (select count(*)::integer from event) as events,
    (select count(*)::integer from config_change) as changes,
    (select count(*)::integer from member where role = 'owner' and status = 'active') as owners`
  type State = { events: number; changes: number; owners: number }
  return (await database.query<State>(text)).rows[0]!
}

type Place = { statement: number; when: 'before' | 'after' }

/** Kills the command there; false: it came to its end. */
async function killAt({ statement, when }: Place, args: readonly string[]) {
  await prepareOwners()
  const before = await readState()
  const tap = await startDatabaseTap(stack().database.url)
  const child = run([...args, '--email', emails[0]!], tap.url)
  const kill = async () => void child.kill('SIGKILL')
  tap.arm({ statement, when, kill })
  const code = await ended(child)
  const isKilled = code === null
  const { statements } = tap
  tap.stop()
  await untilEnded(tap.backendPids)
  const isNew = !isKilled || when === 'after'
  const more = isNew ? 1 : 0
  expect(await readState(), statements.at(-1)).toEqual({
    events: before.events + more,
    changes: before.changes + more,
    owners: 2 - more,
  })
  // The last owner stays one; of two, one may go.
  const next = await ended(run([...args, '--email', emails[1]!], stack().database.url))
  expect(next).toBe(isNew ? 1 : 0)
  expect((await readState()).owners).toBe(1)
  return { isKilled, statements: [...statements] }
}

async function untilEnded(pids: readonly number[]) {
  const text = 'select pid from pg_stat_activity where pid = any($1)'
  const count = async () => (await database.query(text, [pids])).rowCount
  await expect.poll(count, { interval: 5, timeout: 10_000 }).toBe(0)
}

test.each([[['suspend']], [['set-role', '--role', 'viewer']]])(
  'killed before every statement of %j: all of it or nothing, and an owner is left',
  async (args) => {
    let statement = 0
    while ((await killAt({ statement, when: 'before' }, args)).isKilled) statement++
    const last = await killAt({ statement: statement - 1, when: 'after' }, args)
    expect(last.isKilled).toBe(true)
    expect(statement).toBeGreaterThanOrEqual(7)
    const text = last.statements.join('\n')
    for (const write of ['update "member"', 'insert into event', 'insert into "config_change"']) {
      expect(text).toContain(write)
    }
  },
)
