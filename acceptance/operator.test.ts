import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'

import { createProjectApiKey } from '@gatehouse/contract/api-key'
import { createExport, deleteExport } from '@gatehouse/contract/exports/export-sink'
import { listModels } from '@gatehouse/contract/model'
import { createPolicy, publishPolicy } from '@gatehouse/contract/policy'
import { listProjects } from '@gatehouse/contract/project'
import { programFile } from '@gatehouse/tools/program'
import type { NewOrganization } from '@gatehouse/tools/start-stack'
import pg from 'pg'
import { expect, test } from 'vitest'

import { call } from './support/call.ts'
import { useStack } from './support/use-stack.ts'

// The operator commands, run as an operator runs them.

const stack = useStack()

const operator = (...args: string[]) => operatorWith(stack().service, args)

function operatorWith(
  env: Record<string, string>,
  args: readonly string[],
): Promise<{ code: number; output: string; errors: string }> {
  return new Promise((resolve) => {
    const command = [programFile('gatehouse'), 'operator', ...args]
    execFile(process.execPath, command, { env }, (error, output, errors) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, output, errors }),
    )
  })
}

test('create prints the first administrator key once, and it works', async () => {
  const { code, output } = await operator('organizations', 'create', '--name', ' Example  Ltd ')
  expect([code, output]).toEqual([0, expect.stringContaining('it is not shown again')])
  const [, credential] = /^admin_key: (gate_adm_\w{49})$/m.exec(output) ?? []
  const answer = await call(stack().description.base_url, listProjects, { credential })
  expect(answer.json).toMatchObject({ data: [{ name: 'Default', status: 'active' }] })
  const list = await operator('organizations', 'list')
  expect(list.output).toContain('Example  Ltd  active')
  expect(list.output).not.toContain('gate_adm_')
})

test('create --usd grants credits under a reserved id, so that the operator can use any other', async () => {
  const made = await operator('organizations', 'create', '--name', 'A', '--usd', '20', '--json')
  expect(made.code).toBe(0)
  const created = JSON.parse(made.output) as { organization_id: string }
  expect(created).toMatchObject({ credits_granted: true })
  const more = ['--id', 'welcome', '--usd', '5', '--json']
  const granted = await operator('organizations', 'grant', created.organization_id, ...more)
  expect(JSON.parse(granted.output)).toMatchObject({ balance_usd: 25, changed: true })
})

test('create --usd still prints the key when the grant fails, reports why, and exits with 1', async () => {
  const admin = new pg.Client({ connectionString: stack().database.url })
  await admin.connect()
  try {
    await admin.query(`create function refuse_grant() returns trigger language plpgsql as
      $$ begin raise exception 'no grants today'; end $$`)
    await admin.query(`create trigger no_grants before insert on ledger_entry
      for each row execute function refuse_grant()`)
    const create = ['organizations', 'create', '--name', 'Unlucky', '--usd', '20']
    const made = await operator(...create, '--json')
    expect([made.code, made.errors]).toEqual([1, expect.stringContaining('no grants today')])
    const { admin_key: credential, ...others } = JSON.parse(made.output) as { admin_key: string }
    expect(others).toMatchObject({ credits_granted: false })
    const answer = await call(stack().description.base_url, listProjects, { credential })
    expect(answer.status).toBe(200)
    const described = await operator(...create)
    expect([described.code, described.output]).toEqual([
      1,
      expect.stringContaining('credits_granted: false'),
    ])
  } finally {
    await admin.query('drop function if exists refuse_grant cascade')
    await admin.end()
  }
})

test('create --plan and limits hold at once: 70 calls in a minute work', async () => {
  const limits = ['--requests-per-minute', '200', '--concurrent-requests', '9']
  const create = ['organizations', 'create', '--name', 'Busy', '--usd', '20', '--plan', 'developer']
  const { code, output } = await operator(...create, ...limits, '--json')
  expect(code).toBe(0)
  const made = JSON.parse(output) as NewOrganization
  const given = { requests_per_minute: 200, concurrent_requests: 9 }
  expect(made).toMatchObject({ plan: 'developer', tier: 'tier_1', ...given })
  const shown = JSON.parse(
    (await operator('limits', 'show', made.organization_id, '--json')).output,
  ) as object
  expect(shown).toMatchObject({ data: [{ scope: 'organization', limits: given }] })
  const { base_url } = stack().description
  const key = await call(base_url, createProjectApiKey, {
    credential: made.admin_key,
    params: { project_id: made.project_id },
    body: { name: 'first' },
  })
  const credential = (key.json as { value: string }).value
  const statuses: number[] = []
  for (let count = 0; count < 70; count++)
    statuses.push((await call(base_url, listModels, { credential })).status)
  expect(new Set(statuses)).toEqual(new Set([200]))
  const events = await operator('audit', 'events', made.organization_id, '--json')
  const { data } = JSON.parse(events.output) as { data: object[] }
  expect(data.at(-1)).toMatchObject({ payload: { after: { plan: 'developer', limits: given } } })
})

test('a mistake in a plan or a limit creates nothing, and neither does a failure in the middle', async () => {
  const countOrganizations = async () =>
    (JSON.parse((await operator('organizations', 'list', '--json')).output) as { data: object[] })
      .data.length
  const before = await countOrganizations()
  const create = (...flags: string[]) =>
    operator('organizations', 'create', '--name', 'Half', '--plan', 'growth', ...flags)
  for (const [flag, value] of [
    ['--plan', 'gold'],
    ['--requests-per-minute', '0'],
    ['--tokens-per-day', 'many'],
    ['--project', 'proj_1'],
  ] as const) {
    const { code, errors } = await create(flag, value)
    expect([code, errors]).toEqual([2, expect.stringContaining(flag)])
  }
  const admin = new pg.Client({ connectionString: stack().database.url })
  await admin.connect()
  try {
    await admin.query(`create function refuse_limits() returns trigger language plpgsql as
      $$ begin raise exception 'no limits today'; end $$`)
    await admin.query(`create trigger no_limits before insert on limit_override
      for each row execute function refuse_limits()`)
    const { code, output, errors } = await create('--requests-per-minute', '5')
    expect([code, output, errors]).toEqual([1, '', expect.stringContaining('no limits today')])
  } finally {
    await admin.query('drop function if exists refuse_limits cascade')
    await admin.end()
  }
  expect(await countOrganizations()).toBe(before)
})

test('plan sets the operator plan; show prints it beside the subscribed plan', async () => {
  const { run } = await addOrganization()
  const given = { plan: 'growth', operator_plan: 'growth', subscribed_plan: 'free' }
  expect(await run('plan', '--plan', 'growth')).toMatchObject(given)
  expect(await run('show')).toMatchObject(given)
})

test('suspend and reinstate print the new status, and may be repeated', async () => {
  const { organization_id: id } = stack().description
  for (const [word, status] of [
    ['suspend', 'suspended'],
    ['suspend', 'suspended'],
    ['reinstate', 'active'],
  ] as const) {
    const { code, output } = await operator('organizations', word, id, '--json')
    expect([code, JSON.parse(output)]).toEqual([0, expect.objectContaining({ id, status })])
  }
})

test('recover prints a new key for an organization that has lost its keys', async () => {
  const { organization_id: id, base_url } = stack().description
  const { output } = await operator('organizations', 'recover', id, '--json')
  const { admin_key: credential } = JSON.parse(output) as { admin_key: string }
  expect((await call(base_url, listProjects, { credential })).status).toBe(200)
  const missing = await operator('organizations', 'recover', 'org_none')
  expect([missing.code, missing.errors]).toEqual([1, expect.stringContaining('org_none')])
})

test('list is paged', async () => {
  const first = JSON.parse((await operator('organizations', 'list', '--json')).output) as {
    data: { id: string }[]
  }
  const after = first.data[0]?.id ?? ''
  const { output } = await operator('organizations', 'list', '--after', after, '--json')
  const rest = JSON.parse(output) as typeof first
  expect(rest.data).toEqual(first.data.slice(1))
})

/** Creates an organization; `run` runs a command on it. */
async function addOrganization() {
  const made = await operator('organizations', 'create', '--name', 'Payer', '--json')
  const { organization_id: id } = JSON.parse(made.output) as { organization_id: string }
  const run = async (command: string, ...args: string[]) => {
    const { code, output, errors } = await operator('organizations', command, id, ...args, '--json')
    return code === 0 ? (JSON.parse(output) as object) : { code, errors }
  }
  return { id, run }
}

test('payments, grants and refunds change the balance once by their ids, and show prints it', async () => {
  const { id, run } = await addOrganization()
  const usd = (amount: string) => ['--usd', amount]
  const none = { balance_credits: 0, held_credits: 0, used_credits: 0, paid_usd: 0, tier: 'free' }
  expect(await run('show')).toMatchObject({ id, plan: 'free', ...none })
  const paid = { balance_credits: 20_500_000, balance_usd: 20.5, paid_usd: 20.5, tier: 'tier_1' }
  for (const changed of [true, false]) {
    const answer = await run('payment', '--id', 'pay_1', ...usd('20.5'))
    expect(answer).toMatchObject({ id, ...paid, changed })
  }
  expect(await run('grant', '--id', 'gift_1', ...usd('0.000001'))).toMatchObject({
    balance_credits: 20_500_001,
    available_credits: 20_500_001,
    paid_usd: 20.5,
  })
  const back = ['--id', 'back_1', '--payment', 'pay_1', ...usd('10')]
  const left = { balance_credits: 10_500_001, paid_usd: 10.5, tier: 'free' }
  for (const changed of [true, false]) {
    expect(await run('refund', ...back)).toMatchObject({ ...left, changed })
  }
  for (const [args, text] of [
    [['grant', '--id', 'gift_1', ...usd('1')], 'with another amount: 0.000001 USD'],
    [['grant', '--id', 'pay_1', ...usd('20.5')], "'pay_1' is recorded already, as a payment"],
    [['refund', '--id', 'back_2', '--payment', 'pay_1', ...usd('11')], 'Only 10.50 USD'],
    [['refund', '--id', 'back_2', '--payment', 'pay_2', ...usd('1')], "no payment 'pay_2'"],
  ] as const) {
    const [command, ...rest] = args
    expect(await run(command, ...rest)).toEqual({
      code: 1,
      errors: expect.stringContaining(text) as string,
    })
  }
  const shown = await operator('organizations', 'show', id)
  expect(shown.output).toContain('balance_credits: 10500001\nbalance_usd: 10.500001\n')
  for (const scope of [[], [id]]) {
    const checked = await operator('credits', 'reconcile', ...scope)
    expect([checked.code, checked.output]).toEqual([0, expect.stringContaining('agrees')])
  }
  const json = JSON.parse((await operator('credits', 'reconcile', id, '--json')).output) as object
  expect(json).toEqual({ organizations: 1, entries: 3, difference_count: 0, differences: [] })
})

test.each([
  [['organizations', 'create'], 2, '--name is missing.'],
  [['organizations', 'create', '--name', ''], 2, '--name takes 1 to 80 characters'],
  [['organizations', 'create', '--nmae', 'x'], 2, "Did you mean '--name'?"],
  [['organizations', 'suspend'], 2, '<organization id> is missing.'],
  [['organizations', 'suspend', 'org_none'], 1, "No organization has the id 'org_none'"],
  [['organizations', 'list', '--after', 'org_none'], 1, "No organization has the id 'org_none'"],
  [['organizations', 'show', 'org_none'], 1, "No organization has the id 'org_none'"],
  [['organizations', 'payment', 'org_1', '--id', 'pay_1'], 2, '--usd is missing.'],
  [['organizations', 'grant', 'org_1', '--usd', '5'], 2, '--id is missing.'],
  [['organizations', 'grant', 'org_1', '--id', 'a', '--usd', '-5'], 2, '--usd needs a value.'],
  [['organizations', 'grant', 'org_1', '--id', 'a', '--usd=0'], 2, 'more than 0 US dollars'],
  [['organizations', 'refund', 'org_1', '--id', 'a', '--usd', '5'], 2, '--payment is missing.'],
  [['organizations', 'create', 'Example', '--name', 'x'], 2, "does not take 'Example'"],
  [['organizations', 'create', '--name', 'x', '--id', 'a'], 2, "does not take '--id'"],
  [['organizations', 'list', 'org_1', '--usd', '5'], 2, "does not take 'org_1', '--usd'"],
  [['organizations', 'suspend', 'org_1', 'org_2'], 2, "does not take 'org_2'"],
  [['organizations', 'show', 'org_1', '--after', 'a'], 2, "show' does not take '--after'"],
  [['organizations', 'plan', 'org_1', '--plan', 'free', '--usd', '5'], 2, "not take '--usd'"],
  [['organizations', 'grant', 'org_1', '--payment', 'a'], 2, "does not take '--payment'"],
  [['organizations', 'constructor'], 2, "There is no command 'organizations constructor'"],
  [['credits', 'reconcile', 'org_1', 'org_2'], 2, "does not take 'org_2'"],
  [['credits', 'reconcile', '--usd', '5'], 2, "does not take '--usd'"],
  [['credits', 'destroy'], 2, "There is no command 'credits destroy'"],
  [['organizations', 'destroy'], 2, "There is no command 'organizations destroy'"],
  [['organizations', 'lsit'], 2, "Did you mean 'organizations list'?"],
  [['planets', 'list'], 2, "There is no command 'planets'"],
] as const)('%j is explained', async (args, code, text) => {
  const result = await operator(...args)
  expect([result.code, result.errors]).toEqual([code, expect.stringContaining(text)])
  if (code === 2) expect(result.errors).toContain('Usage:')
})

test('without arguments it prints all commands', async () => {
  expect((await operator()).output).toContain('reinstate <organization id>')
})

test('before the migrations, and without a database, it reports what to run', async () => {
  const admin = new pg.Client({ connectionString: stack().database.url })
  await admin.connect()
  const name = `gatehouse_empty_${process.pid}`
  const url = new URL(stack().database.url)
  url.pathname = `/${name}`
  const list = () =>
    operatorWith({ ...stack().service, DATABASE_URL: url.toString() }, ['organizations', 'list'])
  const absent = await list()
  expect([absent.code, absent.output]).toEqual([1, ''])
  expect(absent.errors).toMatch(/does not exist.*Create it.*`\.\/dev migrate`/)
  await admin.query(`create database ${name}`)
  try {
    const empty = await list()
    expect([empty.code, empty.output]).toEqual([1, ''])
    expect(empty.errors).toMatch(/no Gatehouse tables.*`\.\/dev migrate`.*`gatehouse migrate`/)
  } finally {
    await admin.query(`drop database ${name} with (force)`)
    await admin.end()
  }
})

test('wrong arguments are reported before missing settings, and each missing setting once', async () => {
  const typo = await operatorWith({}, ['organizations', 'create'])
  expect([typo.code, typo.errors]).toEqual([2, expect.stringContaining('--name is missing.')])
  const unset = await operatorWith({}, ['organizations', 'list'])
  expect(unset.code).toBe(1)
  expect(unset.errors).toContain('operator: DATABASE_URL and MASTER_KEYS are not set.')
  expect(unset.errors.match(/MASTER_KEYS: /g)).toHaveLength(1)
})

test('audit events lists the events of an organization, and without one those of nobody', async () => {
  const { organization_id: id } = stack().description
  const listed = await operator('audit', 'events', id)
  expect([listed.code, listed.output]).toEqual([0, expect.stringMatching(/  revision  created  /)])
  const { data } = JSON.parse((await operator('audit', 'events', id, '--json')).output) as {
    data: { id: string; event_type: string; payload: unknown }[]
  }
  const oldest = data.at(-1)!
  expect(oldest).toMatchObject({ event_type: 'revision', payload: { before: null } })
  const beyond = await operator('audit', 'events', id, '--after', oldest.id)
  expect(beyond.output).toBe(`There are no events of ${id}.\n`)
  const foreign = await operator('audit', 'events', '--after', oldest.id)
  expect([foreign.code, foreign.errors]).toEqual([
    1,
    expect.stringContaining(`There is no event '${oldest.id}' of operator.`),
  ])
  expect((await operator('audit', 'events')).output).toBe('There are no events of operator.\n')
})

test('secrets rewrap seals the secrets of sinks with a new master key, and says which none opens', async () => {
  const { base_url, admin_key: credential } = stack().description
  const config = { endpoint: 'https://splunk.example.com', token: 'canary-5b1f' }
  const body = { type: 'splunk_hec', config }
  const made = await call(base_url, createExport, { credential, body })
  const { id } = (made.json as { export: { id: string } }).export
  const keys = [2, 3].map((version) => `${version}:${randomBytes(32).toString('base64')}`)
  const rewrapWith = (MASTER_KEYS: string) =>
    operatorWith({ ...stack().service, MASTER_KEYS }, ['secrets', 'rewrap', '--json'])
  const { MASTER_KEYS: old = '' } = stack().service as { MASTER_KEYS?: string }
  const rewrapped = await rewrapWith(`${keys[0]},${old}`)
  expect(JSON.parse(rewrapped.output)).toEqual({
    sinks: 1,
    guardrails: 0,
    proposals: 0,
    rewrapped: 1,
    unreadable: 0,
  })
  const again = await rewrapWith(String(keys[0]))
  expect(JSON.parse(again.output)).toEqual({
    sinks: 1,
    guardrails: 0,
    proposals: 0,
    rewrapped: 0,
    unreadable: 0,
  })
  const wrong = await rewrapWith(String(keys[1]))
  expect([wrong.code, wrong.output]).toEqual([1, ''])
  expect(wrong.errors).toContain('operator: MASTER_KEYS does not belong to this database: ')
  // As if it had been sealed with a key that is lost.
  const admin = new pg.Client({ connectionString: stack().database.url })
  await admin.connect()
  const damaged = 'set_byte(secrets, 40, 255 - get_byte(secrets, 40))'
  await admin.query(`update export_sink set secrets = ${damaged} where id = $1`, [id])
  await admin.end()
  // Back to the key of the stack, which the other tests use.
  const without = await rewrapWith(`${old},${keys[0]}`)
  expect([without.code, JSON.parse(without.output)]).toEqual([
    1,
    { sinks: 1, guardrails: 0, proposals: 0, rewrapped: 0, unreadable: 1 },
  ])
  expect(without.errors).toContain(`No key of MASTER_KEYS opens the secrets of ${id}.`)
  const shown = [rewrapped, again, wrong, without].flatMap(({ output, errors }) => [output, errors])
  expect(shown.join('')).not.toContain(config.token)
  await call(base_url, deleteExport, { credential, params: { export_id: id } })
})

test('policies check lists what cannot be evaluated, and exits with 1 if something enforcing is among it', async () => {
  const { base_url, admin_key: credential } = stack().description
  const good = await operator('policies', 'check')
  expect([good.code, good.output]).toEqual([0, expect.stringContaining('0 cannot be evaluated')])
  const publish = async (rule: string) => {
    const body = { name: 'Rule', rule, scope: 'organization' }
    const made = await call(base_url, createPolicy, { credential, body })
    const { id } = made.json as { id: string }
    const params = { policy_id: id }
    await call(base_url, publishPolicy, { credential, params, body: { revision: 1 } })
    return id
  }
  const older = await publish('cel: text.contains("unkind")')
  const plain = await publish('cel: text.contains("bad")')
  const admin = new pg.Client({ connectionString: stack().database.url })
  await admin.connect()
  try {
    // As an earlier release published it. The hash is not that of this content any more.
    await admin.query('alter table policy_version disable trigger all')
    const rule = 'cel: mood("bad") > 0'
    await admin.query(`update policy_version set rule = $2 where policy_id = $1`, [plain, rule])
    const published = `update policy_version set published_at = '2026-01-01' where policy_id = $1`
    await admin.query(published, [older])
    const monitoring = await operator('policies', 'check')
    expect(monitoring.code).toBe(0)
    const reason = 'monitoring  the rule is not accepted: line 1, column 6: there is no function'
    expect(monitoring.output).toContain(`${plain}  1  monitoring  ${reason}`)
    const seesMore = 'text in requests now includes instructions, tools and documents'
    expect(monitoring.output).toContain(`${older}  1  monitoring  monitoring  ${seesMore}`)
    await admin.query(`update policy_version set mode = 'enforcing' where policy_id = $1`, [plain])
    await admin.query(`update policy set state = 'paused' where id = $1`, [plain])
  } finally {
    await admin.end()
  }
  const enforcing = await operator('policies', 'check', '--json')
  expect(enforcing.code).toBe(1)
  expect(JSON.parse(enforcing.output)).toMatchObject({
    failing: 1,
    enforcing: 1,
    wider: 1,
    wider_data: [{ policy_id: older, version: 1 }],
    data: [{ policy_id: plain, version: 1, state: 'paused', mode: 'enforcing' }],
    has_more: false,
  })
})

test('audit resume numbers what a moved database has left without a number', async () => {
  const admin = new pg.Client({ connectionString: stack().database.url })
  await admin.connect()
  try {
    // As after a dump from a server with more transactions: nothing that is written now is numbered.
    await admin.query(`update audit_cursor set xid = '1000000000000'`)
    await operator('organizations', 'create', '--name', 'Moved Ltd')
    const { code, output } = await operator('audit', 'resume', '--json')
    expect([code, JSON.parse(output)]).toEqual([0, { events_numbered: expect.any(Number) }])
    const open = `select count(*)::integer as events from event
      where not exists (select from audit_log where event_id = event.id)`
    await expect
      .poll(async () => (await admin.query(open)).rows, { timeout: 60_000 })
      .toEqual([{ events: 0 }])
    expect(JSON.parse((await operator('audit', 'resume', '--json')).output)).toEqual({
      events_numbered: 0,
    })
  } finally {
    await admin.end()
  }
})
